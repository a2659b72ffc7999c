package mcppool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcppool/mcppool"
)

// modelWorld is what the pool of a model test sees of the world: servers in memory
// that watch for what must never be, and a record of every call.
type modelWorld struct {
	plan *modelPlan
	pool *mcppool.Pool
	zero time.Time

	mu      sync.Mutex // protects the fields below, those of clients and of calls
	trace   strings.Builder
	problem string // the first violation
	clients []*modelClient
	dials   []*modelDial // under way
	dialed  int
	calls   []*modelCall
	servers [len(modelServers)]modelHistory
	// limits are those in force, the loosest of them since the world was last quiet.
	limits mcppool.Limits
	// hadLimits are all that ever were: what they refused is excused.
	hadLimits     []mcppool.Limits
	idled         []time.Time // the times that CloseIdle was told
	startFailures int
	busy          bool // something may be running

	// interruptAt is when calls are interrupted, once Close or Shutdown has begun.
	interruptAt time.Time
	sealed      bool // Close has returned
}

// modelHistory is what happened to a server.
type modelHistory struct {
	closed        time.Time // when it was last closed or retired
	retired       time.Time // when it was last retired
	failures      int       // dials that failed in a row; a burst counts once
	firstFailed   time.Time // the first of them
	failed        time.Time // the last one
	failedBegan   time.Time // and when it began
	deaths        []time.Time
	wedged        []time.Time // looks that weren't answered
	startFailures int         // in all
	troubles      int         // and deaths
}

// modelServers are the kinds of servers. None differs from another only in what is no
// part of its identity.
var modelServers = [...]mcppool.Server{
	{Command: "plain"},
	{Command: "plain", Env: map[string]string{"N": "2"}, Policy: mcppool.Policy{IdleTimeout: -1}},
	{Command: "probed", Policy: mcppool.Policy{AfterAbandon: mcppool.AbandonProbe}},
	{Command: "exclusive", Policy: mcppool.Policy{Mode: mcppool.Exclusive}},
	{Command: "shared", Policy: mcppool.Policy{Mode: mcppool.Shared}},
	{Command: "stateless", Policy: mcppool.Policy{Mode: mcppool.Shared, Concurrent: true, Processes: 2, AfterAbandon: mcppool.AbandonProbe}},
	{Command: "spared", Policy: mcppool.Policy{Spares: 1}},
	{URL: "http://far.example/mcp"},
}

// modelDial is one connect, as the server sees it.
type modelDial struct {
	server  int
	scope   string
	ctx     context.Context
	process bool
	began   time.Time
}

// modelCall is one call, or the wait for a lease and the lease itself.
type modelCall struct {
	id       int
	kind     modelKind
	server   int
	scope    string
	plan     modelCallPlan
	lease    *modelCall // within which it is made
	held     bool       // the lease was got
	given    bool       // and given back
	began    time.Time
	deadline time.Time
	cancelAt time.Time

	sent      int
	client    *modelClient
	unsent    int  // how often the connection was lost right before
	saidNo    bool // its check
	discarded bool // the lease
	answered  bool
	closed    bool // the server or scope was closed since it began
	doomed    bool // and nothing of it may be sent any more
	ended     bool
	endedAt   time.Time
	err       error
	panicked  bool
}

func (w *modelWorld) since() time.Duration { return time.Since(w.zero) }

func (w *modelWorld) logLockedf(format string, args ...any) {
	fmt.Fprintf(&w.trace, "%8s  ", w.since())
	fmt.Fprintf(&w.trace, format, args...)
	w.trace.WriteByte('\n')
}

func (w *modelWorld) logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logLockedf(format, args...)
}

// failLocked notes a violation. What names it is the format: rapid takes two failures
// for the same one when their texts are.
func (w *modelWorld) failLockedf(format string, args ...any) {
	w.logLockedf("VIOLATION: "+format, args...)
	if w.problem == "" {
		w.problem = format
	}
}

func (w *modelWorld) failf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLockedf(format, args...)
}

func (w *modelWorld) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.problem != ""
}

// modelScope is the key of the ctx value that names the scope of who began a connect.
type modelScope struct{}

func (w *modelWorld) dialServer(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
	w.mu.Lock()
	d := &modelDial{server: -1, ctx: ctx, process: !srv.IsHTTP(), began: time.Now()}
	d.scope, _ = ctx.Value(modelScope{}).(string)
	for i := range modelServers {
		if modelServers[i].String() == srv.String() {
			d.server = i
		}
	}
	plan := w.plan.dial(w.dialed)
	w.dialed++
	w.dials = append(w.dials, d)
	w.logLockedf("dial of %d for %q: %+v", d.server, d.scope, plan)
	w.checkStartLocked(d)
	w.mu.Unlock()

	err := plan.connect(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.dials {
		if w.dials[i] == d {
			w.dials = append(w.dials[:i], w.dials[i+1:]...)
			break
		}
	}
	h := &w.servers[d.server]
	if err != nil {
		w.logLockedf("dial of %d for %q ends: %v", d.server, d.scope, err)
		if !errors.Is(ctx.Err(), context.Canceled) {
			w.startFailures++
			h.startFailures++
			h.troubles++
			if h.failures == 0 {
				h.firstFailed = time.Now()
			}
			if after := w.plan.Options.Backoff.Failures; h.failures < after || d.began.After(h.failed) {
				h.failures++
				h.failed, h.failedBegan = time.Now(), d.began
			}
		}
		if err == errModelPanic {
			panic(err)
		}
		return nil, err
	}
	h.failures = 0
	c := &modelClient{w: w, id: len(w.clients), dial: d, server: d.server, plan: plan, done: make(chan struct{}),
		opened: time.Now(), lastUse: time.Now()}
	w.clients = append(w.clients, c)
	w.logLockedf("client %d of %d is up", c.id, c.server)
	if plan.DieAfter > 0 {
		time.AfterFunc(plan.DieAfter, c.die)
	}
	if plan.Prober {
		return modelProber{c}, nil
	}
	return c, nil
}

// checkStartLocked looks whether a process may start now.
func (w *modelWorld) checkStartLocked(d *modelDial) {
	srv := &modelServers[d.server]
	h := &w.servers[d.server]
	if w.sealed {
		w.failLockedf("a server is started although the pool is closed")
	}
	// The pool learns of a death when it next looks, and may take it then for one after
	// a long life, which excuses the failures before. So does who came up before them
	// and has lived long since.
	b := w.plan.Options.Backoff
	unseen := false
	for _, c := range w.clients {
		unseen = unseen || c.server == d.server && (c.died && (c.closes == 0 || !c.closedAt.Before(h.firstFailed)) ||
			!c.opened.Add(b.MinUptime).Before(h.firstFailed))
	}
	for _, at := range h.deaths { // which began a pause already, so that the failure adds nothing
		unseen = unseen || !at.Before(h.failedBegan) && !at.After(h.failed)
	}
	if b.Failures > 0 && h.failures >= b.Failures && h.failed.Before(d.began) && !unseen &&
		// When a failure ties with the end of the last who waited, it doesn't count.
		uint64(w.startFailures) == w.pool.Stats().Failures {
		pause := min(b.Max, b.Initial<<min(h.failures-b.Failures, 20))
		if since := d.began.Sub(h.failed); since < pause-pause/4-1 {
			w.failLockedf("server %d is started %s after its failure number %d in a row: the pause is %s", d.server, since, h.failures, pause)
		}
		for _, other := range w.dials {
			if other != d && other.server == d.server && other.began.After(h.failed) && other.ctx.Err() == nil {
				w.failLockedf("two attempts at a time to start server %d, which fails", d.server)
			}
		}
	}
	if !d.process {
		return
	}
	all, ofServer, ofScope := w.processesLocked(d.server, d.scope)
	starting := 0
	for _, other := range w.dials {
		if other.process {
			starting++
		}
	}
	l := w.limits
	perServer := l.MaxPerServer
	if srv.Policy.Mode == mcppool.Exclusive {
		perServer = 1
	}
	for name, is := range map[string][2]int{
		"MaxProcesses": {all, l.MaxProcesses},
		"MaxPerServer": {ofServer, perServer},
		"MaxStarting":  {starting, l.MaxStarting},
	} {
		if is[1] > 0 && is[0] > is[1] {
			w.failLockedf("%s is %d, and with the start of server %d there are %d", name, is[1], d.server, is[0])
		}
	}
	if d.scope != "" && srv.Policy.Mode != mcppool.Shared && l.MaxPerScope > 0 && ofScope > l.MaxPerScope {
		w.failLockedf("MaxPerScope is %d, and with the start of server %d scope %q has %d", l.MaxPerScope, d.server, d.scope, ofScope)
	}
}

// processesLocked counts the processes that there are: those whose dial is under way, and
// those whose Close hasn't returned.
func (w *modelWorld) processesLocked(server int, scope string) (all, ofServer, ofScope int) {
	count := func(s int, sc string) {
		all++
		if s == server {
			ofServer++
		}
		if sc == scope && modelServers[s].Policy.Mode != mcppool.Shared {
			ofScope++
		}
	}
	for _, d := range w.dials {
		if d.process {
			count(d.server, d.scope)
		}
	}
	for _, c := range w.clients {
		if c.dial.process && !c.ended {
			count(c.server, c.scopeLocked())
		}
	}
	return all, ofServer, ofScope
}

// scopeLocked is whose process it is; empty when that isn't known.
func (c *modelClient) scopeLocked() string {
	if c.bound {
		return c.scope
	}
	return c.dial.scope
}

// checkSendLocked looks whether a call may be sent to a client.
func (w *modelWorld) checkSendLocked(c *modelClient, rec *modelCall) {
	srv := &modelServers[c.server]
	lease := rec.lease
	holder := rec
	if lease != nil {
		holder = lease
	}
	switch {
	case rec.sent > 0:
		w.failLockedf("call %d is sent twice", rec.id)
	case rec.server != c.server:
		w.failLockedf("call %d of server %d reaches server %d", rec.id, rec.server, c.server)
	case rec.ended:
		w.failLockedf("call %d is sent after it has returned", rec.id)
	case rec.saidNo:
		w.failLockedf("call %d is sent although its check said no", rec.id)
	case rec.doomed && lease == nil:
		w.failLockedf("call %d is sent although its server was closed while it waited", rec.id)
	case lease == nil && rec.began.After(w.servers[c.server].retired) && c.opened.Before(w.servers[c.server].retired):
		w.failLockedf("call %d reaches client %d, whose server was retired before", rec.id, c.id)
	case time.Now().After(rec.deadline):
		w.failLockedf("call %d is sent after its deadline", rec.id)
	case lease != nil && lease.given:
		w.failLockedf("call %d is sent in a lease that was given back", rec.id)
	case !srv.Policy.Concurrent && c.running > 0:
		w.failLockedf("call %d overlaps another at client %d", rec.id, c.id)
	case !srv.Policy.Concurrent && c.holder != nil && c.holder != lease:
		w.failLockedf("call %d reaches client %d, which lease %d holds", rec.id, c.id, c.holder.id)
	}
	if srv.Policy.Mode != mcppool.Shared {
		if c.bound && (c.scope != rec.scope || rec.scope == "" && lease == nil) {
			w.failLockedf("call %d of scope %q reaches client %d, which has served scope %q", rec.id, rec.scope, c.id, c.scope)
		}
		w.checkKeptLocked(c, rec)
	}
	c.bound, c.scope = true, rec.scope
	if lease != nil && c.holder == nil {
		c.holder = holder
	}
}

// checkKeptLocked looks whether a call reaches the state of its scope: no other client of
// it is still good.
func (w *modelWorld) checkKeptLocked(c *modelClient, rec *modelCall) {
	if rec.scope == "" || !c.dial.process {
		return
	}
	for _, other := range w.clients {
		if other != c && other.server == c.server && other.bound && other.scope == rec.scope && other.closes == 0 &&
			w.excuseLocked(other) == "" {
			w.failLockedf("call %d reaches client %d, though client %d holds the scope's state", rec.id, c.id, other.id)
		}
	}
}

// excuseLocked says why a client may be closed or replaced; empty when nothing
// speaks for it.
func (w *modelWorld) excuseLocked(c *modelClient) string {
	srv := &modelServers[c.server]
	o := &w.plan.Options
	now := time.Now()
	timeout := o.IdleTimeout
	if srv.Policy.IdleTimeout != 0 {
		timeout = srv.Policy.IdleTimeout
	}
	limited := srv.Policy.Mode == mcppool.Exclusive
	for _, l := range w.hadLimits {
		limited = limited || l.MaxProcesses > 0 || l.MaxPerScope > 0 || l.MaxPerServer > 0
	}
	switch {
	case c.lost:
		return "lost"
	case !w.interruptAt.IsZero():
		return "shutdown"
	case c.doubt:
		return "a call was given up"
	case (c.suspect || o.HealthInterval > 0) && (c.plan.Mute || c.busyUntil.After(c.lastUse)):
		return "it may be wedged"
	case c.refused:
		return "refused"
	case !c.bound || srv.IsHTTP() || c.scope == "" && srv.Policy.Mode != mcppool.Shared:
		return "nothing is lost with it"
	case !w.servers[c.server].closed.Before(c.opened):
		return "closed or retired"
	case o.MaxSessions > 0:
		return "the cap"
	case limited:
		return "a limit"
	case o.Recycle.MaxCalls > 0 && c.calls >= o.Recycle.MaxCalls:
		return "many calls"
	case o.Recycle.MaxLifetime > 0 && now.Sub(c.dial.began) >= o.Recycle.MaxLifetime*9/10:
		return "old"
	case timeout > 0 && now.Sub(c.lastUse) >= timeout:
		return "idle"
	}
	for _, rec := range w.calls {
		if (rec.saidNo || rec.discarded) && rec.server == c.server && (srv.Policy.Mode == mcppool.Shared || rec.scope == c.scope) {
			return "its holder said so"
		}
	}
	for _, at := range w.idled {
		if !c.lastUse.After(at) {
			return "CloseIdle"
		}
	}
	return ""
}
