package mcppool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/pages"
)

// ToolList is the tools that a server lists.
type ToolList struct {
	// Tools have their schemas in RawInputSchema and RawOutputSchema, as the server
	// wrote them.
	Tools []mcp.Tool
	// Skipped are the entries that are no tool and so aren't among the Tools.
	Skipped []SkippedTool
}

// SkippedTool is an entry of a server's list of tools that can't be understood.
type SkippedTool struct {
	Name   string // empty when it has none
	Reason string // what is wrong with it
}

// maxVisit bounds how long a server is waited for that is asked for its tools.
const maxVisit = 30 * time.Second

var errNoList = fmt.Errorf("no answer within %s", maxVisit)

// ListTools returns the Tools of [Pool.ToolList].
func (p *Pool) ListTools(ctx context.Context, srv Server, want Borrow) ([]mcp.Tool, error) {
	return toolsOf(p.ToolList(ctx, srv, want))
}

func toolsOf(list *ToolList, err error) ([]mcp.Tool, error) {
	if err != nil {
		return nil, err
	}
	return list.Tools, nil
}

// ToolList lists the tools of srv, all pages of them, as the session of want.Scope sees them
// if there is one, and else as any other session of srv does. It waits for the turn of a
// session that is busy. Where no session is open it starts one, which belongs to the
// first call that comes while it connects, or is kept as a spare. So listing costs no
// state, and no process that isn't used. Servers at a URL get a session for the listing
// alone.
//
// Its answer is awaited for 30 seconds, so that a server that doesn't list keeps the
// callers of its session waiting no longer than that. The time for its start doesn't
// count. A server whose cursor doesn't move on gets an error rather than a loop. The list fails
// with [ErrServerClosed] too when the session that it is asked of is closed with its
// scope; it may be asked for again then.
func (p *Pool) ToolList(ctx context.Context, srv Server, want Borrow) (*ToolList, error) {
	const op = "tools/list"
	b := p.newBorrower(ctx, &srv, want.Scope, want.Check)
	b.want.Any = true
	c, err := p.borrow(&b)
	if err != nil {
		return nil, wrap(op, &srv, phaseQueue, err)
	}
	why := ReasonPanicked // unless the client returns
	defer func() { p.endVisit(ctx, c, why) }()
	visit, cancel := context.WithTimeout(ctx, maxVisit)
	defer cancel()
	c.current.Begin("", 0)
	defer c.current.End()
	list, err := c.toolList(visit)
	why = ""
	if err == nil {
		return list, nil
	}
	err, done := c.end(visit, op, err)
	if ctx.Err() == nil && visit.Err() != nil && errors.Is(err, visit.Err()) {
		err = &opError{op: op, server: c.label, phase: phaseSent, err: errNoList}
	}
	switch why = done.why; why {
	case ReasonTimeout, ReasonCancelled:
		if !p.visited(c) {
			why = "" // the state that others left in it is as it was, if the server lives
			if _, cheap := c.client.(Prober); cheap && ctx.Err() == nil {
				c.doubtIt()
			}
		}
	}
	return nil, err
}

// visited reports whether c was begun for a visit and is nobody's.
func (p *Pool) visited(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return c.st.Visited()
}

// endVisit gives a session back. A visit doesn't count as a use of what somebody has
// used.
func (p *Pool) endVisit(ctx context.Context, c *conn, why CloseReason) {
	p.mu.Lock()
	from := c.borrowedOrigin() // as a spare it may be somebody's once it is given back
	p.state.LeaveVisit(c.st, nil, reason(why), p.now())
	p.unlock()
	if p.trace.SessionReleased != nil {
		p.trace.SessionReleased(ctx, SessionReleasedInfo{from, why})
	}
}

// ListTools returns the Tools of [Session.ToolList].
func (l *Session) ListTools(ctx context.Context) ([]mcp.Tool, error) {
	return toolsOf(l.ToolList(ctx))
}

// ToolList lists all tools, as [Pool.ToolList] does, as this session sees them.
func (l *Session) ToolList(ctx context.Context) (list *ToolList, err error) {
	err = l.run(ctx, "tools/list", func() (err error) {
		list, err = l.c.toolList(ctx)
		return err
	})
	return list, err
}

// toolList follows the pages of tools/list.
func (c *conn) toolList(ctx context.Context) (*ToolList, error) {
	var list ToolList
	err := pages.Follow("tools/list", func(cursor mcp.Cursor) (mcp.Cursor, error) {
		var req mcp.ListToolsRequest
		req.Params.Cursor = cursor
		return c.toolPage(ctx, req, &list)
	}, func() int { return len(list.Tools) })
	if err != nil {
		return nil, err
	}
	return &list, nil
}

// toolPage adds a page to list and returns the cursor of the next one.
func (c *conn) toolPage(ctx context.Context, req mcp.ListToolsRequest, list *ToolList) (next mcp.Cursor, err error) {
	d, ok := c.client.(*defaultClient)
	if !ok {
		page, err := c.client.ListTools(ctx, req)
		if err != nil {
			return "", publicError(c.server.redact, err)
		}
		list.Tools = append(list.Tools, page.Tools...)
		return page.NextCursor, nil
	}
	page, err := d.Conn.ListTools(ctx, req)
	if err != nil {
		return "", publicError(d.redact, err)
	}
	list.Tools = append(list.Tools, page.Tools...)
	for _, s := range page.Skipped {
		list.Skipped = append(list.Skipped, SkippedTool{Name: s.Name, Reason: s.Reason})
	}
	return page.NextCursor, nil
}
