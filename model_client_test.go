package mcppool_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// modelClient is one connection.
type modelClient struct {
	w      *modelWorld
	id     int
	dial   *modelDial
	server int
	plan   modelDialPlan
	done   chan struct{}

	lost, died bool
	closes     int
	closedAt   time.Time
	ended      bool // Close has returned
	opened     time.Time
	lastUse    time.Time
	bound      bool // it has served, and scope is whose state it holds
	scope      string
	calls      int
	running    int
	holder     *modelCall // the lease
	busyUntil  time.Time
	doubt      bool // a call was given up, under Discard
	suspect    bool // a call was given up, under Probe
	suspected  time.Time
	refused    bool // the check of a call said no, its holder discarded it, or panicked
}

func (p modelDialPlan) connect(ctx context.Context) error {
	gone := ctx.Done()
	if p.Stubborn {
		gone = nil
	}
	if p.Takes > 0 {
		select {
		case <-time.After(p.Takes):
		case <-gone:
			return ctx.Err()
		}
	}
	if p.Panics {
		return errModelPanic
	}
	if p.Fails {
		return errors.New("no such luck")
	}
	return nil
}

// modelProber is a client that knows a cheap way to be looked at.
type modelProber struct{ *modelClient }

func (c modelProber) Probe(ctx context.Context) error { return c.look(ctx, "probe") }

func (c *modelClient) ListTools(ctx context.Context, _ mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	if err := c.look(ctx, "list"); err != nil {
		return nil, err
	}
	if c.plan.NoList {
		return nil, &mcppool.RPCError{Code: -32601, Message: "method not found"}
	}
	return &mcp.ListToolsResult{}, nil
}

var errModelLost = transport.NewError(transport.ErrTransportClosed)

// look is a request without effect, answered when the server gets to it.
func (c *modelClient) look(ctx context.Context, what string) error {
	w := c.w
	w.mu.Lock()
	srv := &modelServers[c.server]
	if c.running > 0 && !srv.Policy.Concurrent {
		w.failLockedf("client %d gets a %s during a call", c.id, what)
	}
	if what == "probe" && !c.suspect && !c.suspected.Equal(time.Now()) && w.plan.Options.HealthInterval == 0 {
		w.failLockedf("client %d is probed without a reason", c.id)
	}
	if c.lost {
		w.mu.Unlock()
		return errModelLost
	}
	c.running++
	free := time.Until(c.busyUntil)
	w.logLockedf("client %d gets a %s, free in %s", c.id, what, free)
	w.mu.Unlock()
	var answer <-chan time.Time
	if !c.plan.Mute {
		answer = time.After(max(free, 0))
	}
	var err error
	select {
	case <-answer:
	case <-ctx.Done():
		err = ctx.Err()
	case <-c.done:
		err = errModelLost
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.running--
	w.logLockedf("client %d: %s ends: %v", c.id, what, err)
	switch {
	case err == nil:
		c.suspect = false
	case ctx.Err() != nil:
		w.givenUpLocked(c)
		w.servers[c.server].wedged = append(w.servers[c.server].wedged, time.Now())
	}
	return err
}

// givenUpLocked notes that a client's server may be busy with what nobody waits for.
func (w *modelWorld) givenUpLocked(c *modelClient) {
	c.suspect = true
	c.doubt = c.doubt || w.policy(&modelServers[c.server]) != mcppool.AbandonProbe
}

func (c *modelClient) CallTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	w := c.w
	w.mu.Lock()
	var id int
	_, _ = fmt.Sscan(req.Params.Name, &id)
	rec := w.calls[id]
	defer w.mu.Unlock()
	wait := func(d time.Duration) error {
		w.mu.Unlock()
		defer w.mu.Lock()
		select {
		case <-time.After(max(d, 0)):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-c.done:
			return errModelLost
		}
	}
	// Until it is written, it isn't sent.
	switch {
	case rec.plan.Pipe > 0:
		if err := wait(rec.plan.Pipe); err != nil {
			if err == errModelLost {
				rec.unsent++
			}
			w.logLockedf("call %d isn't sent to client %d: %v", id, c.id, err)
			return nil, mcppool.MarkNotSent(err)
		}
	case rec.plan.End == endLostUnsent && rec.unsent == 0:
		c.dieLocked()
	}
	if c.lost {
		rec.unsent++
		w.logLockedf("call %d isn't sent to client %d, which is lost", id, c.id)
		return nil, mcppool.MarkNotSent(errModelLost)
	}
	srv := &modelServers[c.server]
	w.logLockedf("call %d is sent to client %d", id, c.id)
	w.checkSendLocked(c, rec)
	rec.sent++
	rec.client = c
	c.calls++
	c.running++
	c.lastUse = time.Now()
	defer func() {
		c.running--
		c.lastUse = time.Now()
		if ctx.Err() != nil { // also when that ties with the answer
			c.suspect, c.suspected = true, time.Now()
		}
	}()
	if rec.plan.End == endPanic {
		c.refused = true
		panic("a client that panics")
	}
	takes := rec.plan.Takes
	if rec.plan.End == endHang {
		takes = modelForever
	}
	if !srv.Policy.Concurrent { // one request at a time
		now := time.Now()
		if c.busyUntil.Before(now) {
			c.busyUntil = now
		}
		c.busyUntil = c.busyUntil.Add(takes)
		takes = c.busyUntil.Sub(now)
	}
	if rec.plan.End == endDie {
		time.AfterFunc(takes, c.die)
		takes += time.Nanosecond
	}
	if err := wait(takes); err != nil {
		if ctx.Err() != nil {
			w.givenUpLocked(c)
			if rec.plan.Stops {
				c.busyUntil = time.Now()
			}
		}
		w.logLockedf("call %d at client %d ends: %v", id, c.id, err)
		return nil, err
	}
	rec.answered = true
	w.logLockedf("call %d is answered by client %d", id, c.id)
	switch rec.plan.End {
	case endRPC:
		return nil, &mcppool.RPCError{Code: -1, Message: "an error of the server's own"}
	case endOdd:
		if now := time.Now(); !now.Before(rec.deadline) || !rec.cancelAt.IsZero() && !now.Before(rec.cancelAt) {
			w.givenUpLocked(c) // nobody knows it for an answer
		}
		return nil, errModelOdd
	case endIsError:
		return mcp.NewToolResultError(req.Params.Name), nil
	default:
		return mcp.NewToolResultText(req.Params.Name), nil
	}
}

var errModelOdd = errors.New("undecodable result")

// modelForever is longer than anything waits.
const modelForever = 24 * time.Hour

func (w *modelWorld) policy(srv *mcppool.Server) mcppool.AbandonPolicy {
	if srv.Policy.AfterAbandon != mcppool.AbandonDefault {
		return srv.Policy.AfterAbandon
	}
	return w.plan.Options.AfterAbandon
}

func (c *modelClient) Done() <-chan struct{} { return c.done }

func (c *modelClient) Err() error { return errors.New("gone") }

// die loses the connection, as the end of the process does.
func (c *modelClient) die() {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.dieLocked()
}

func (c *modelClient) dieLocked() {
	if c.lost {
		return
	}
	c.lost, c.died = true, true
	close(c.done)
	h := &c.w.servers[c.server]
	h.deaths = append(h.deaths, time.Now())
	h.troubles++
	h.failures = 0 // the pool may have seen it hold, or not: it is not told of every death
	c.w.logLockedf("client %d dies", c.id)
}

func (c *modelClient) Close() error {
	w := c.w
	w.mu.Lock()
	if why := w.excuseLocked(c); why == "" {
		w.failLockedf("client %d is closed for no reason", c.id)
	} else {
		w.logLockedf("client %d is closed (%s)", c.id, why)
	}
	c.closes++
	c.closedAt = time.Now()
	if c.closes > 1 {
		w.failLockedf("client %d is closed %d times", c.id, c.closes)
	}
	if !c.lost {
		c.lost = true
		close(c.done)
	}
	w.mu.Unlock()
	time.Sleep(c.plan.CloseTime)
	w.mu.Lock()
	c.ended = true
	w.logLockedf("client %d is gone", c.id)
	w.mu.Unlock()
	return nil
}
