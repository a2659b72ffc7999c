package mcpconn

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/decode"
	"github.com/mcppool/mcppool/internal/offers"
	"github.com/mcppool/mcppool/internal/rpc"
	"github.com/mcppool/mcppool/internal/stdio"
)

// How a server is asked for its era. There are two questions, server/discover of the
// modern era and initialize of the old one, and both go to the same process. The
// second follows when the first is refused, or when the server has been silent on it
// for a while: some old servers ignore what they don't know, and one that is only slow
// to start answers both. The first sound answer counts, and of two that come together
// the modern one. No server is ended because it is slow.

var (
	// probeTime bounds the silence after which the second question follows; it is half
	// of what is left when that is less. A variable for the tests alone.
	probeTime = 1500 * time.Millisecond

	// togetherTime is within what the answers to both questions come together.
	togetherTime = 100 * time.Millisecond

	// killTime is how soon after the question a server exits that it may have killed,
	// where it can't be known whether it was read.
	killTime = 5 * time.Second

	// unread is how much of what was sent a server hasn't read, where that is known. A
	// variable for the tests alone, which try the other systems' way here.
	unread = (*stdio.Conn).Unread
)

var (
	errNotModern = errors.New("server speaks no modern revision of the protocol")
	errSilent    = errors.New("server answers neither server/discover nor initialize")
)

// greeting asks one process.
type greeting struct {
	conn  *Conn
	order []rpc.Era // questions yet to be asked
	hasty bool      // the next one follows on a silence, too
	gives bool      // a silence on all of them ends the greeting, when half of the time is over

	begun    time.Time
	look     *time.Ticker  // at the silence
	patience time.Duration // with it
	since    time.Time     // of it
	silent   time.Duration // how long it had been when that ended the greeting; zero otherwise
	replies  chan reply
	work     sync.WaitGroup // of the questions
	pending  int
	held     *reply // a sound answer of the old era, while the modern one may come
	refusals map[rpc.Era]error
	asked    map[rpc.Era]bool
	odd      odd
}

// reply is what became of a question.
type reply struct {
	era     rpc.Era
	info    *mcp.InitializeResult // nil with err
	version string
	err     error
}

func newGreeting(c *Conn, order ...rpc.Era) *greeting {
	return &greeting{
		conn: c, order: order, replies: make(chan reply, len(order)),
		refusals: make(map[rpc.Era]error), asked: make(map[rpc.Era]bool),
	}
}

// run asks until the connection is made. Its errors are that of the last question,
// the loss of the connection, why there will be no answer, errSilent, and ctx's.
func (g *greeting) run(ctx context.Context) error {
	within, cancel := context.WithCancel(ctx)
	defer g.work.Wait()
	defer cancel()
	g.begun = time.Now()
	g.since = g.begun
	g.ask(within)

	g.patience = g.conn.cfg.silence(ctx)
	g.look = time.NewTicker(max(g.patience/8, time.Millisecond))
	defer g.look.Stop()
	var together <-chan time.Time
	for {
		select {
		case r := <-g.replies:
			done, err := g.take(within, r)
			if done {
				return g.first(ctx, err)
			}
			if g.held != nil && together == nil {
				together = time.After(togetherTime)
			}
		case <-together:
			return g.first(ctx, g.settle(within, *g.held))
		case <-g.look.C:
			if g.isSilent(ctx) {
				if len(g.order) == 0 {
					g.silent = time.Since(g.begun)
					return errSilent
				}
				g.askOn(within)
			}
		case o := <-g.conn.child.Odd():
			g.hear(within, o)
		case <-g.odd.verdict:
			if g.isSenseless() {
				return g.odd.reason
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// askOn asks the next question though the last one isn't answered.
func (g *greeting) askOn(ctx context.Context) {
	g.ask(ctx)
	g.since, g.patience = time.Now(), g.halfOfAll(ctx)
	g.look.Reset(max(g.patience/8, time.Millisecond))
}

// first returns the end of ctx in place of an error that it caused.
func (g *greeting) first(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// ask asks the next question.
func (g *greeting) ask(ctx context.Context) {
	era := g.order[0]
	g.order = g.order[1:]
	g.asked[era] = true
	g.pending++
	g.work.Go(func() {
		r := reply{era: era}
		if era == rpc.Modern {
			r.version, r.info, r.err = g.conn.discover(ctx)
		} else {
			r.info, r.err = g.conn.initialize(ctx)
			if r.info != nil {
				r.version = r.info.ProtocolVersion
			}
		}
		g.replies <- r
	})
}

// take takes what became of a question; done is true when that ends the greeting.
func (g *greeting) take(ctx context.Context, r reply) (done bool, err error) {
	g.pending--
	switch {
	case r.err == nil && r.era == rpc.Legacy && g.pending > 0:
		g.held = &r
		return false, nil
	case r.err == nil:
		return true, g.settle(ctx, r)
	case errors.Is(r.err, rpc.ErrLost), ctx.Err() != nil:
		return true, r.err
	}
	g.refusals[r.era] = r.err
	switch {
	case g.held != nil:
		return true, g.settle(ctx, *g.held)
	case len(g.order) > 0:
		g.ask(ctx)
		return false, nil
	case g.pending > 0 && !isUnclear(r.err):
		return false, nil // a server of one era may refuse the other's question first
	}
	// Of two refusals that of initialize says more: an old server knows nothing of
	// server/discover.
	if err := g.refusals[rpc.Legacy]; err != nil {
		return true, err
	}
	return true, r.err
}

// settle makes the connection one of the era that has answered.
func (g *greeting) settle(ctx context.Context, r reply) error {
	c := g.conn
	c.info = r.info
	c.info.ProtocolVersion = r.version
	if r.era == rpc.Legacy {
		if err := c.child.Notify(ctx, string(mcp.MethodNotificationInitialized), nil); err != nil {
			return err
		}
	}
	if mcp.IsModernProtocol(r.version) {
		c.meta.Store(rpc.NewRequestMeta(r.version, c.cfg.ClientInfo, &c.cfg.Handlers))
		c.watchTools()
	}
	return nil
}

// isSilent reports whether the server has been silent for as long as that is borne.
// Where it can be seen that it has not read what it was asked, the silence has not
// begun: npx reads nothing until it has installed the package.
func (g *greeting) isSilent(ctx context.Context) bool {
	if len(g.order) == 0 && !g.gives || len(g.order) > 0 && !g.hasty || g.patience <= 0 {
		return false
	}
	if n, known := unread(g.conn.child); known && n > 0 {
		g.since = time.Now()
		if len(g.order) > 0 {
			g.patience = g.conn.cfg.silence(ctx)
		} else {
			g.patience = g.halfOfAll(ctx)
		}
		return false
	}
	return time.Since(g.since) >= g.patience
}

// halfOfAll is half of the time that is left; zero without a deadline, when there is
// no reason to give a server up.
func (g *greeting) halfOfAll(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return time.Until(deadline) / 2
}

// refused reports whether a question got an answer that wasn't sound.
func (g *greeting) refused(era rpc.Era) bool { return g.refusals[era] != nil }

// mayHaveKilled reports whether server/discover, the first question, may be what ended
// the server, given how the greeting failed.
func (g *greeting) mayHaveKilled(err error) bool {
	var not *rpc.NotSentError
	switch {
	case !errors.Is(err, rpc.ErrLost):
		return false
	case g.asked[rpc.Legacy]:
		return true // the first was refused, or read and met with silence
	case errors.As(err, &not):
		return false
	}
	if left, known := unread(g.conn.child); known {
		return left == 0
	}
	return time.Since(g.begun) < killTime
}

func isUnclear(err error) bool {
	var unclear *rpc.AnswerError
	return errors.As(err, &unclear)
}

// silence is how long a server may be silent on the first question.
func (cfg *Config) silence(ctx context.Context) time.Duration {
	d := probeTime
	if deadline, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(deadline)/2)
	}
	if left := time.Until(cfg.Hurry); left > 0 { // else whoever was in a hurry has left
		d = min(d, left/2)
	}
	return d
}

// discover is server/discover, and once more if the server names another version. It
// is refused by whatever isn't the answer of a modern server: some old ones answer
// anything with an empty result.
func (c *Conn) discover(ctx context.Context) (version string, info *mcp.InitializeResult, err error) {
	version = mcp.LATEST_PROTOCOL_VERSION
	for range 2 {
		meta := rpc.NewRequestMeta(version, c.cfg.ClientInfo, &c.cfg.Handlers)
		raw, err := c.child.Request(ctx, string(mcp.MethodServerDiscover), meta.In(nil))
		var refused *rpc.Error
		switch {
		case errors.As(err, &refused):
			other := decode.NewestModern(decode.Supported(refused))
			if other == "" || other == version {
				return "", nil, errNotModern
			}
			version = other
			continue
		case err != nil:
			return "", nil, err
		}
		versions, info, err := decode.Discover(raw)
		if err != nil || !modern(versions) {
			return "", nil, errNotModern
		}
		return version, info, nil
	}
	return "", nil, errNotModern
}

func modern(versions []string) bool {
	return slices.ContainsFunc(versions, mcp.IsModernProtocol)
}

// initialize is the handshake of the old era, but for the notification that ends it.
func (c *Conn) initialize(ctx context.Context) (*mcp.InitializeResult, error) {
	params, err := offers.Params(map[string]any{
		"protocolVersion": mcp.LATEST_LEGACY_PROTOCOL_VERSION,
		"clientInfo":      c.cfg.ClientInfo,
		"capabilities":    c.cfg.Handlers.Capabilities(),
	})
	if err != nil {
		return nil, err
	}
	var raw json.RawMessage
	if raw, err = c.child.Request(ctx, string(mcp.MethodInitialize), params); err != nil {
		return nil, err
	}
	return decode.Initialize(raw)
}
