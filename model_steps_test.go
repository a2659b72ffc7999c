package mcppool_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// run takes the steps, and ends the pool however far it came.
func (w *modelWorld) run() {
	w.zero = time.Now()
	opts := w.plan.Options
	opts.Dial = w.dialServer
	p, err := mcppool.New(&opts)
	if err != nil {
		w.failf("New: %v", err)
		return
	}
	w.pool = p
	var wg sync.WaitGroup
	for i := range w.plan.Steps {
		if w.failed() {
			break
		}
		s := &w.plan.Steps[i]
		w.step(&wg, s)
		w.busy = true
		if err := mcppool.CheckInvariants(p); err != nil {
			w.failf("an invariant is broken: %v", err)
		}
		if !s.Racing {
			w.quiet()
		}
	}
	if !w.failed() && w.plan.End.For > 0 {
		time.Sleep(w.plan.End.For)
		w.quiet()
		if w.plan.End.For > time.Minute {
			w.drained()
		}
	}
	w.step(&wg, &w.plan.End)
	if !w.failed() {
		w.quiet()
	}
	wg.Go(func() { w.end(noDeadline) })
	wg.Wait()
	w.buried()
}

// quiet waits until nothing runs that isn't waiting for time to pass, and looks at
// everything.
func (w *modelWorld) quiet() {
	synctest.Wait()
	if err := errors.Join(mcppool.CheckInvariants(w.pool), mcppool.CheckQuiet(w.pool)); err != nil {
		w.failf("an invariant is broken in a quiet pool: %v", err)
	}
	stats := w.pool.Stats()
	var infos []mcppool.SessionInfo
	for info := range w.pool.Sessions() {
		infos = append(infos, info)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
	w.limits = w.hadLimits[len(w.hadLimits)-1]
	if err := sumsUp(stats); err != nil {
		w.failLockedf("%v: %+v", err, stats)
	}
	if all, _, _ := w.processesLocked(0, ""); all != stats.Processes {
		w.failLockedf("there are %d processes, and Stats says %d", all, stats.Processes)
	}
	live := 0
	for _, c := range w.clients {
		if c.closes == 0 {
			live++
		}
	}
	if live != stats.Live {
		w.failLockedf("there are %d connections, and Stats says %d", live, stats.Live)
	}
	var sent uint64
	for _, rec := range w.calls {
		if rec.ended && rec.sent > 0 {
			sent++
		}
		if rec.doomed && !rec.ended && !rec.held {
			w.failLockedf("call %d goes on although its server, scope or pool was closed", rec.id)
		}
	}
	if sent != stats.Calls-stats.Outcomes[mcppool.OutcomeNotSent] {
		w.failLockedf("%d calls were sent and have ended, and Stats says %d", sent, stats.Calls)
	}
	for _, info := range infos {
		timeout := w.plan.Options.IdleTimeout
		for i := range modelServers {
			if t := modelServers[i].Policy.IdleTimeout; t != 0 && modelServers[i].String() == info.Server {
				timeout = t
			}
		}
		if idle := time.Since(info.LastUsed); info.Kept && info.InFlight == 0 && timeout > 0 && idle > timeout {
			w.failLockedf("a session is idle for %s", idle)
		}
	}
}

func sumsUp(s mcppool.Stats) error {
	var closed uint64
	for _, n := range s.Closed {
		closed += n
	}
	switch {
	case s.Connects != uint64(s.Open)+closed, s.Open != s.Queued+s.Connecting+s.Live+s.Closing:
		return fmt.Errorf("the numbers don't add up: %+v", s)
	case s.Idle > s.Kept || s.Borrowed < 0:
		return fmt.Errorf("more are idle than there are: %+v", s)
	}
	return nil
}

// drained looks at a pool in which no call is left, and no connect or close either.
func (w *modelWorld) drained() {
	s := w.pool.Stats()
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Queued+s.Connecting+s.Closing+s.Waiting > 0 {
		w.failLockedf("after all calls have ended there is something left: %+v", s)
	}
	if s.Live != s.Idle+s.Spares && w.plan.Options.HealthInterval == 0 {
		w.failLockedf("a session is neither used nor idle: %+v", s)
	}
	for _, rec := range w.calls {
		if !rec.ended {
			w.failLockedf("call %d hasn't ended", rec.id)
		}
	}
}

// buried looks at what the end has left.
func (w *modelWorld) buried() {
	if n := mcppool.Remembered(w.pool); n != 0 {
		w.failf("%d things are remembered by a closed pool", n)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if all, _, _ := w.processesLocked(0, ""); all != 0 {
		w.failLockedf("%d processes are left by a closed pool", all)
	}
	for _, c := range w.clients {
		if c.closes != 1 {
			w.failLockedf("client %d was closed %d times", c.id, c.closes)
		}
	}
	for _, rec := range w.calls {
		if !rec.ended {
			w.failLockedf("call %d hasn't ended", rec.id)
		}
	}
}

// step takes one. Only what returns at once is done here.
func (w *modelWorld) step(wg *sync.WaitGroup, s *modelStep) {
	p, srv := w.pool, modelServers[s.Server]
	w.logf("-- %s %d %q %s", s.Kind, s.Server, s.Scope, s.For)
	switch s.Kind {
	case stepSleep:
		time.Sleep(s.For)
	case stepCall, stepList, stepDo, stepAcquire, stepPrewarm:
		rec := w.begin(s, s.Call, nil)
		wg.Go(func() { w.call(s, rec) })
	case stepKill:
		w.mu.Lock()
		var alive []*modelClient
		for _, c := range w.clients {
			if !c.lost {
				alive = append(alive, c)
			}
		}
		if len(alive) > 0 {
			alive[s.N%len(alive)].dieLocked()
		}
		w.mu.Unlock()
	case stepServer:
		w.closing(s.Server, func(rec *modelCall) bool { return rec.server == s.Server })
		p.CloseServer(srv)
	case stepCommand:
		same := func(i int) bool { return modelServers[i].Command == srv.Command && modelServers[i].URL == srv.URL }
		for i := range modelServers {
			if same(i) {
				w.closing(i, func(rec *modelCall) bool { return rec.server == i })
			}
		}
		p.CloseCommand(srv)
	case stepScope:
		mine := func(rec *modelCall) bool {
			return rec.kind != stepList && rec.scope == s.Scope && s.Scope != "" && modelServers[rec.server].Policy.Mode != mcppool.Shared
		}
		for i := range modelServers {
			w.closing(i, mine)
		}
		p.CloseScope(s.Scope)
	case stepIdle:
		w.mu.Lock()
		w.idled = append(w.idled, time.Now().Add(-s.For))
		w.mu.Unlock()
		p.CloseIdle(s.For)
	case stepRetire:
		w.closing(s.Server, func(*modelCall) bool { return false })
		w.mu.Lock()
		w.servers[s.Server].retired = time.Now()
		w.mu.Unlock()
		p.RetireServer(srv)
	case stepReset:
		w.mu.Lock()
		w.servers[s.Server].failures = 0
		w.mu.Unlock()
		p.ResetBackoff(srv)
	case stepLimits:
		w.mu.Lock()
		w.limits = loosest(w.limits, s.Limits)
		w.hadLimits = append(w.hadLimits, s.Limits)
		w.logLockedf("limits: %+v", s.Limits)
		w.mu.Unlock()
		p.SetLimits(s.Limits)
	case stepShutdown:
		ctx, cancel := context.WithTimeout(context.Background(), s.Call.Timeout)
		wg.Go(func() {
			defer cancel()
			w.end(ctx)
		})
	case stepClose:
		wg.Go(func() { w.end(noDeadline) })
	}
}

// closing notes that a server is closed for some calls. When nothing else runs it is
// clear which those are, and nothing of them may be sent any more.
func (w *modelWorld) closing(server int, which func(*modelCall) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[server].closed = time.Now()
	for _, rec := range w.calls {
		if (!rec.ended || rec.held && !rec.given) && which(rec) {
			rec.closed = true
			rec.doomed = rec.doomed || !w.busy
		}
	}
}

func loosest(a, b mcppool.Limits) mcppool.Limits {
	loose := func(a, b int) int {
		if a == 0 || b == 0 {
			return 0
		}
		return max(a, b)
	}
	b.MaxProcesses = loose(a.MaxProcesses, b.MaxProcesses)
	b.MaxStarting = loose(a.MaxStarting, b.MaxStarting)
	b.MaxPerScope = loose(a.MaxPerScope, b.MaxPerScope)
	b.MaxPerServer = loose(a.MaxPerServer, b.MaxPerServer)
	return b
}

// noDeadline makes end close at once.
var noDeadline = context.Background()

// end ends the pool: gently as long as ctx isn't over.
func (w *modelWorld) end(ctx context.Context) {
	at := time.Now()
	if ctx != noDeadline {
		at, _ = ctx.Deadline()
	}
	w.mu.Lock()
	if w.interruptAt.IsZero() || at.Before(w.interruptAt) {
		w.interruptAt = at
	}
	w.mu.Unlock()
	if ctx == noDeadline {
		_ = w.pool.Close()
	} else {
		_ = w.pool.Shutdown(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sealed = true
	if all, _, _ := w.processesLocked(0, ""); all != 0 {
		w.failLockedf("%d processes are left when Close or Shutdown returns", all)
	}
}

// begin makes the record of a call.
func (w *modelWorld) begin(s *modelStep, plan modelCallPlan, lease *modelCall) *modelCall {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	rec := &modelCall{
		id: len(w.calls), server: s.Server, scope: s.Scope, plan: plan, lease: lease, began: now, deadline: now.Add(plan.Timeout),
		kind: s.Kind,
	}
	switch {
	case lease != nil:
		rec.kind = stepCall
	case s.Kind == stepPrewarm:
		rec.scope = ""
	}
	if plan.Cancel >= 0 {
		rec.cancelAt = now.Add(plan.Cancel)
	}
	w.calls = append(w.calls, rec)
	w.logLockedf("%s %d of %d %q: %+v", s.Kind, rec.id, s.Server, s.Scope, plan)
	return rec
}

// context is the ctx of a call, of which the world knows when it ends.
func (rec *modelCall) context(parent context.Context) (context.Context, func()) {
	scope := rec.scope
	if rec.kind == stepList {
		scope = "" // what it starts is nobody's
	}
	ctx, cancel := context.WithDeadline(context.WithValue(parent, modelScope{}, scope), rec.deadline)
	if rec.cancelAt.IsZero() {
		return ctx, cancel
	}
	t := time.AfterFunc(time.Until(rec.cancelAt), cancel)
	return ctx, func() { t.Stop(); cancel() }
}

// toolCall is the Call of a record.
func (w *modelWorld) toolCall(rec *modelCall) mcppool.Call {
	c := mcppool.Call{Tool: fmt.Sprint(rec.id), Scope: rec.scope}
	if rec.plan.CheckNo > 0 {
		asked := 0
		c.Check = func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			asked++
			rec.saidNo = rec.saidNo || asked >= rec.plan.CheckNo
			if rec.lease != nil {
				rec.lease.saidNo = rec.lease.saidNo || rec.saidNo
			}
			return !rec.saidNo
		}
	}
	return c
}

var errModelPanic = errors.New("it panicked")

// call makes a call, and judges how it ends.
func (w *modelWorld) call(s *modelStep, rec *modelCall) {
	ctx, cancel := rec.context(context.Background())
	defer cancel()
	p, srv := w.pool, modelServers[s.Server]
	switch s.Kind {
	case stepCall:
		w.judge(rec, func() (*mcp.CallToolResult, error) { return p.CallTool(ctx, srv, w.toolCall(rec)) })
	case stepList:
		w.judge(rec, func() (*mcp.CallToolResult, error) {
			_, err := p.ListTools(ctx, srv, mcppool.Borrow{Scope: rec.scope})
			return nil, err
		})
	case stepPrewarm:
		w.judge(rec, func() (*mcp.CallToolResult, error) { return nil, p.Prewarm(ctx, srv, s.N) })
	case stepDo:
		w.judge(rec, func() (*mcp.CallToolResult, error) {
			return nil, p.Do(ctx, srv, mcppool.Borrow{Scope: rec.scope}, func(ctx context.Context, l *mcppool.Session) error {
				w.hold(ctx, s, rec, l)
				return nil
			})
		})
	case stepAcquire:
		var l *mcppool.Session
		w.judge(rec, func() (_ *mcp.CallToolResult, err error) {
			l, err = p.Acquire(ctx, srv, mcppool.Borrow{Scope: rec.scope})
			w.mu.Lock()
			rec.held = l != nil
			w.mu.Unlock()
			return nil, err
		})
		if l != nil {
			w.hold(context.Background(), s, rec, l)
		}
	}
}

// hold uses a lease.
func (w *modelWorld) hold(ctx context.Context, s *modelStep, rec *modelCall, l *mcppool.Session) {
	w.mu.Lock()
	rec.held = true
	w.logLockedf("lease %d holds %s", rec.id, l.ID()[13:])
	w.mu.Unlock()
	use := func(plan modelCallPlan) {
		call := w.begin(s, plan, rec)
		ctx, cancel := call.context(ctx)
		defer cancel()
		w.judge(call, func() (*mcp.CallToolResult, error) { return l.CallTool(ctx, w.toolCall(call)) })
		if isOver(l) && l.Err() == nil {
			w.failf("lease %d is over, and nothing says why", rec.id)
		}
	}
	defer func() {
		w.mu.Lock()
		rec.given, rec.discarded = true, s.Discard
		for _, c := range w.clients {
			if c.holder == rec {
				c.holder = nil
				c.refused = c.refused || s.Discard
				c.lastUse = time.Now()
			}
		}
		w.logLockedf("lease %d is given back", rec.id)
		w.mu.Unlock()
		if s.Discard {
			l.Discard()
		}
		l.Release()
		l.Release()
		if !isOver(l) {
			w.failf("lease %d isn't over though it was given back", rec.id)
		}
		use(modelCallPlan{Timeout: time.Second, Cancel: -1})
	}()
	for i := range s.Calls {
		use(s.Calls[i])
	}
	select {
	case <-time.After(s.For):
	case <-l.Done():
	case <-ctx.Done():
	}
}
