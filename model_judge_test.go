package mcppool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// judge runs a call of the pool and looks whether it may end as it does.
func (w *modelWorld) judge(rec *modelCall, f func() (*mcp.CallToolResult, error)) {
	res, panicked, err := catching(f)
	w.mu.Lock()
	defer w.mu.Unlock()
	rec.ended, rec.endedAt, rec.err, rec.panicked = true, time.Now(), err, panicked != nil
	w.logLockedf("%s %d returns: %v %v", rec.kind, rec.id, err, panicked)
	if problem := w.verdictLocked(rec, res, panicked, err); problem != "" {
		w.failLockedf("%s %d "+problem, rec.kind, rec.id)
	}
}

func catching(f func() (*mcp.CallToolResult, error)) (res *mcp.CallToolResult, panicked any, err error) {
	defer func() { panicked = recover() }()
	res, err = f()
	return res, nil, err
}

// verdictLocked says what is wrong with an end, or nothing.
func (w *modelWorld) verdictLocked(rec *modelCall, res *mcp.CallToolResult, panicked any, err error) string {
	over := rec.deadline
	if !rec.cancelAt.IsZero() && rec.cancelAt.Before(over) {
		over = rec.cancelAt
	}
	switch {
	case rec.endedAt.After(over):
		return "ends after its deadline, or its end"
	case panicked != nil && rec.plan.End != endPanic:
		return "panics"
	case panicked != nil:
		return ""
	case err == nil:
		return w.successLocked(rec, res)
	case res != nil:
		return "has a result and an error"
	}
	safe := mcppool.SafeToRetry(err)
	if safe && rec.sent > 0 {
		return "is safe to retry, but was sent"
	}
	ok, retry := w.allowedLocked(rec, err)
	switch {
	case !ok:
		return "may not end like this"
	case retry && rec.sent == 0 && !safe && rec.kind != stepList:
		return "was not sent, and isn't safe to retry"
	}
	return ""
}

func (w *modelWorld) successLocked(rec *modelCall, res *mcp.CallToolResult) string {
	switch {
	case rec.kind == stepPrewarm:
		for _, c := range w.clients {
			if c.server == rec.server {
				return ""
			}
		}
		return "succeeds without a spare"
	case rec.kind != stepCall:
		return ""
	case rec.lease != nil && rec.lease.given:
		return "succeeds in a lease that was given back"
	case rec.sent != 1 || !rec.answered:
		return "succeeds without an answer"
	case res == nil || len(res.Content) != 1 || res.Content[0].(mcp.TextContent).Text != fmt.Sprint(rec.id):
		return "has another's result"
	case res.IsError != (rec.plan.End == endIsError):
		return "has a result of the wrong kind"
	}
	return ""
}

// allowedLocked says whether a call may end with err, and whether it is one after which it
// may be made again if it wasn't sent.
func (w *modelWorld) allowedLocked(rec *modelCall, err error) (ok, retry bool) {
	var (
		rpc    *mcppool.RPCError
		start  *mcppool.StartError
		busy   *mcppool.BusyError
		config *mcppool.ConfigError
		now    = rec.endedAt
		h      = &w.servers[rec.server]
	)
	since := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	switch {
	case errors.As(err, &config):
		return rec.kind == stepPrewarm && modelServers[rec.server].IsHTTP(), false
	case rec.lease != nil && rec.lease.given:
		return strings.Contains(err.Error(), "after it was given back"), false
	case errors.As(err, &rpc):
		return rec.plan.End == endRPC && rec.answered || rec.kind == stepList, false
	case errors.Is(err, errModelOdd):
		return rec.plan.End == endOdd && rec.answered, false
	case errors.As(err, &start):
		if start.RetryAfter > 0 {
			return w.plan.Options.Backoff.Failures > 0 && h.troubles >= w.plan.Options.Backoff.Failures, true
		}
		return h.startFailures > 0, true
	case errors.As(err, &busy):
		return w.busyLocked(rec, busy), true
	case errors.Is(err, context.DeadlineExceeded):
		return since(rec.deadline) || rec.lease != nil && rec.lease.kind == stepDo && since(rec.lease.deadline), true
	case errors.Is(err, context.Canceled):
		return since(rec.cancelAt) || rec.lease != nil && rec.lease.kind == stepDo && since(rec.lease.cancelAt), true
	case errors.Is(err, mcppool.ErrClosed):
		return since(w.interruptAt) || !w.interruptAt.IsZero() && rec.sent == 0 && rec.lease == nil, true
	case errors.Is(err, mcppool.ErrServerClosed):
		return rec.closed || rec.saidNo || (rec.kind == stepPrewarm || rec.kind == stepList) && !h.closed.Before(rec.began) || rec.lease != nil && (rec.lease.closed || rec.lease.saidNo), false
	case errors.Is(err, mcppool.ErrSessionLost):
		return w.lostLocked(rec), rec.kind == stepCall
	default:
		return false, false
	}
}

// busyLocked says whether a limit may have refused a call.
func (w *modelWorld) busyLocked(rec *modelCall, busy *mcppool.BusyError) bool {
	if busy.Limit == "MaxPerServer" && busy.Max == 1 && modelServers[rec.server].Policy.Mode == mcppool.Exclusive {
		return true
	}
	for _, l := range w.hadLimits {
		value := map[string]int{"MaxProcesses": l.MaxProcesses, "MaxStarting": l.MaxStarting, "MaxPerScope": l.MaxPerScope,
			"MaxPerServer": l.MaxPerServer, "MaxWaiting": l.MaxWaiting}[busy.Limit]
		if value > 0 && value == busy.Max {
			return true
		}
	}
	return false
}

// lostLocked says whether the loss of a connection may end a call. One whose connection is
// lost before anything was sent gets another one, once.
func (w *modelWorld) lostLocked(rec *modelCall) bool {
	h := &w.servers[rec.server]
	deaths := func(since time.Time) (n int) {
		for _, at := range slices.Concat(h.deaths, h.wedged) {
			if !at.Before(since) {
				n++
			}
		}
		return n
	}
	switch {
	case rec.lease != nil:
		for _, other := range w.calls {
			if other.lease == rec.lease && (other.saidNo || other.sent > 0 && other.err != nil) {
				return true
			}
		}
		return deaths(rec.lease.began) > 0
	case rec.kind == stepList:
		return deaths(rec.began) > 0
	case rec.sent > 0:
		return rec.client.died || deaths(rec.began) > 0 // one that others share may be wedged
	default:
		n := deaths(rec.began)
		// A close that comes right after the loss was told may not be seen.
		return n > 1 || n > 0 && (rec.closed || !w.interruptAt.IsZero())
	}
}
