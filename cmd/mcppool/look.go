package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

// look starts a server, lists its tools and ends it. Nothing of it runs when look
// returns, but what it reports as left.
func look(ctx context.Context, e *mcpservers.Entry, t times) server {
	s := server{Name: plain(e.Name), Host: string(e.Host), File: plain(e.File), Line: e.Line, Status: statusOK}
	switch {
	case e.Disabled:
		s.Status = statusOff
		return s
	case e.Err != nil:
		s.fail(ctx, e.Err)
		return s
	}
	o := &observer{grace: t.grace()}
	// A pool of its own: all that it reports is of this server.
	pool, err := mcppool.New(&mcppool.Options{Trace: o.trace(), ConnectTimeout: t.start, CloseTimeout: t.end, CloseGrace: t.grace()})
	if err != nil {
		panic("bug: " + err.Error()) // the options are ours
	}
	if err := s.use(ctx, pool, e, t.start); err != nil {
		s.fail(ctx, err)
	}
	s.MemoryBytes = o.measure()
	err = pool.Close()
	o.report(&s)
	s.leaves(err)
	if s.Status == statusOK {
		s.Suggestions = suggest(e, &s)
	}
	return s
}

// use connects to the server and asks for its tools, for which it has as long again.
func (s *server) use(ctx context.Context, pool *mcppool.Pool, e *mcpservers.Entry, listing time.Duration) error {
	srv := e.Server
	srv.Policy.Mode = mcppool.Exclusive // one container may have a name of its own
	session, err := pool.Acquire(ctx, srv, mcppool.Borrow{Scope: "check"})
	if err != nil {
		return err
	}
	defer session.Release()
	ctx, cancel := context.WithTimeout(ctx, listing)
	defer cancel()
	list, err := session.ToolList(ctx)
	if err != nil {
		return fmt.Errorf("it doesn't list its tools: %w", err)
	}
	allowed := 0
	for i := range list.Tools {
		if e.Tools.Allows(list.Tools[i].Name) {
			allowed++
		}
	}
	for _, t := range list.Skipped {
		s.OddTools = append(s.OddTools, oddTool{Name: plain(t.Name), Reason: plain(t.Reason)})
	}
	s.Tools = &allowed
	return nil
}

// leaves takes down what a close could not end.
func (s *server) leaves(err error) {
	if err == nil {
		return
	}
	s.LeftError = plain(reason(err))
	var left *mcppool.LeftError
	if errors.As(err, &left) {
		s.Left = left.PIDs
	}
}

// fail takes down why the server can't be used. What it printed is not part of
// that: it stands beside it.
func (s *server) fail(ctx context.Context, err error) {
	s.Status, s.Error = statusBroken, plain(reason(err))
	if errors.Is(ctx.Err(), context.Canceled) {
		s.Status, s.Error = statusInterrupted, ""
	}
}

// reason is the text of an error without the pool's own prefixes, and without the
// output of the server that ends it.
func reason(err error) string {
	var (
		start *mcppool.StartError
		lost  *mcppool.SessionLostError
	)
	switch {
	case errors.As(err, &start):
		return with("it did not "+start.Phase, start.Err, start.Exit)
	case errors.As(err, &lost):
		return with("it was lost", lost.Err, lost.Exit)
	}
	text := err.Error()
	for _, prefix := range []string{"mcppool: ", "mcpservers: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

// with adds a cause, and how the process ended, as far as they are known and not
// said already.
func with(text string, err error, exit string) string {
	if err != nil {
		text += ": " + strings.TrimPrefix(err.Error(), "mcppool: ")
	}
	if exit != "" && !strings.Contains(text, exit) {
		text += " (" + exit + ")"
	}
	return text
}

// progress is the line of a server that was looked at.
func (s *server) progress() string {
	name := cut(s.Name, maxName)
	switch s.Status {
	case statusOK:
		return fmt.Sprintf("%s: %s, %s", name, seconds(*s.StartMS), count(*s.Tools, "tool"))
	case statusBroken:
		return fmt.Sprintf("%s: failed: %s", name, s.Error)
	default:
		return fmt.Sprintf("%s: %s", name, s.Status)
	}
}
