package mcpconn

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// question is how a server is asked for its era. mcp-go's client asks it, with
// server/discover, and goes on with initialize when the answer isn't that of a
// modern server; here it is decided that an answer isn't, or won't come.
type question struct {
	conn    *Conn
	patient bool // it has all the time there is

	asked   bool
	refused bool          // the answer is not that of a modern server
	lost    bool          // the server exited, or is silent: it can't go on with initialize
	silent  time.Duration // for how long it was, when that is why
}

var (
	errSilent = errors.New("server is silent on server/discover")
	errLost   = errors.New("server did not survive server/discover")
)

func (q *question) send(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	child := q.conn.child
	switch {
	case q.lost:
		return nil, errLost
	case q.asked || req.Method != string(mcp.MethodServerDiscover):
		return child.SendRequest(ctx, req)
	}
	q.asked = true
	begun := time.Now()
	bounded, stop := ctx, func() {}
	if !q.patient {
		bounded, stop = q.conn.untilSilent(ctx)
	}
	defer stop()
	answer, err := child.SendRequest(bounded, req)
	switch {
	case err != nil:
		q.lost = true
		if context.Cause(bounded) == errSilent {
			q.silent = time.Since(begun)
		}
		return nil, err
	case !isModernAnswer(answer):
		q.refused = true
		return nil, errNotModern // what an old server answers, even with a result
	}
	return answer, nil
}

// silence watches a server that was asked what it may not know, and gives the
// question up when the server has been silent for a while. Where it can be seen
// that the server has not read the question yet, the while has not begun: npx reads
// nothing until it has installed the package, and to end it in the middle would not
// make it faster.
type silence struct {
	conn   *Conn
	ctx    context.Context // of the question
	giveUp context.CancelCauseFunc
	every  time.Duration // is how often it looks

	mu       sync.Mutex // protects the fields below
	stopped  bool
	timer    *time.Timer
	since    time.Time
	patience time.Duration
}

// untilSilent is a ctx for a question that the server may not know. stop ends it.
func (c *Conn) untilSilent(ctx context.Context) (_ context.Context, stop func()) {
	w := &silence{conn: c, since: time.Now(), patience: c.cfg.silence(ctx)}
	w.ctx, w.giveUp = context.WithCancelCause(ctx)
	w.every = max(w.patience/8, time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.every, w.look)
	return w.ctx, w.stop
}

// look runs when the timer fires. One that ties with stop does nothing, so that
// nobody has to wait for it.
func (w *silence) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	now := time.Now()
	if n, known := w.conn.child.Unread(); known && n > 0 {
		w.since, w.patience = now, w.conn.cfg.silence(w.ctx)
	} else if now.Sub(w.since) >= w.patience {
		w.giveUp(errSilent)
		return
	}
	w.timer.Reset(w.every)
}

func (w *silence) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
	w.giveUp(nil)
}
