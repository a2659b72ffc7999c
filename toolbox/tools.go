package toolbox

import (
	"context"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// ToolSet is what [Box.Tools] returns. It is shared with other callers, so nobody may
// change it, or what it points to.
type ToolSet struct {
	// Tools are sorted by Name, but for the box's own [SearchTool], which is the first.
	Tools []Tool
	// Failed are the servers that could not be listed, by ID. Those that could before
	// have the tools that they had then among Tools.
	Failed []*ServerError
	// Skipped are entries of servers' lists that are no tools.
	Skipped []SkippedTool
}

// Tool is one tool of one server.
type Tool struct {
	// Name is what the model calls it, and what [Box.Dispatch] takes.
	Name string
	// Server is the id of its server; empty for the box's own [SearchTool].
	Server string
	// Spec is the tool as its server describes it, its own name included. Its schemas are
	// in RawInputSchema and RawOutputSchema, as the server wrote them.
	Spec *mcp.Tool
}

// SkippedTool is an entry of a server's list of tools that can't be understood.
type SkippedTool struct {
	Server string // its id
	Name   string // empty when the entry has none
	Reason string
}

// ServerError says why a server's tools are missing, or, as the error of a call,
// why the server can't be used: that is then its entry's Err.
type ServerError struct {
	Server string // its id
	Err    error
}

func (e *ServerError) Error() string {
	why := e.Err.Error()
	for _, prefix := range []string{"toolbox: ", "mcppool: ", "mcpservers: "} {
		why = strings.TrimPrefix(why, prefix)
	}
	return "toolbox: server " + oneLine(e.Server, maxNamed) + ": " + oneLine(why, maxMessage)
}

func (e *ServerError) Unwrap() error { return e.Err }

// Tools returns the tools of all enabled servers, as they are known: listings are made
// and renewed in the background. A server that hasn't listed its tools yet is waited for,
// for as long as [Options.ListWait] and ctx allow; it is among Failed with [ErrListing]
// when it hasn't answered by then, and its start goes on. One that has failed, or whose
// listing is old, holds nobody up: what is known of it is returned at once. The error is
// the catalog's, or ctx's when it was over from the start.
//
// A listing asks a live session of the server, between its calls. Where there is none a
// session is started, which the first conversation to call the server takes over.
func (b *Box) Tools(ctx context.Context) (*ToolSet, error) {
	return b.tools(ctx, Conversation{}, false)
}

// ToolsFor is Tools as a conversation sees them: of a server whose tools change with
// what was called, those that the conversation's own session offers; and with
// [Options.Search] the search and what it has found. A conversation without a thread
// sees what [Box.Tools] returns.
func (b *Box) ToolsFor(ctx context.Context, conv Conversation) (*ToolSet, error) {
	return b.tools(ctx, conv, false)
}

// Refresh is Tools with every server asked anew, those included that failed a moment
// ago.
func (b *Box) Refresh(ctx context.Context) (*ToolSet, error) {
	return b.tools(ctx, Conversation{}, true)
}

func (b *Box) tools(ctx context.Context, conv Conversation, anew bool) (*ToolSet, error) {
	set, err := b.allTools(ctx, conv, anew)
	if err != nil || conv.Thread == "" || b.opts.Search == nil || len(set.Tools) <= b.opts.Search.above() {
		return set, err
	}
	return b.narrowed(set, conv), nil
}

// allTools are those of a conversation before any search.
func (b *Box) allTools(ctx context.Context, conv Conversation, anew bool) (*ToolSet, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := b.catalog.List(ctx)
	if err != nil {
		return nil, err
	}
	want := ask{anew: anew}
	if conv.Thread != "" {
		want.scope = conv.Scope()
	}
	lists := b.listings.of(ctx, entries, want)
	if last := b.last.Load(); last != nil && last.isOf(entries, lists) {
		return last.set, nil
	}
	a := assemble(entries, lists)
	b.last.Store(a)
	return a.set, nil
}

// assembly is a ToolSet and what it was made of.
type assembly struct {
	entries []Entry
	lists   []*toolList
	set     *ToolSet
}

// isOf reports whether the set is what would be made of these.
func (a *assembly) isOf(entries []Entry, lists []*toolList) bool {
	return slices.Equal(a.lists, lists) && slices.EqualFunc(a.entries, entries, func(x, y Entry) bool {
		return x.ID == y.ID && x.Tools.equal(y.Tools) && errorOf(x.Err) == errorOf(y.Err)
	})
}

// errorOf is an error's text: not every error can be compared.
func errorOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// assemble makes the set of all tools. An entry that can't be used has no list.
func assemble(entries []Entry, lists []*toolList) *assembly {
	set := new(ToolSet)
	for i := range entries {
		e, list := &entries[i], lists[i]
		if e.Err != nil && !e.Disabled {
			set.Failed = append(set.Failed, &ServerError{Server: e.ID, Err: e.Err})
			continue
		}
		if list == nil {
			continue
		}
		if list.err != nil {
			set.Failed = append(set.Failed, &ServerError{Server: e.ID, Err: list.err})
		}
		set.Tools = appendTools(set.Tools, e, list.tools)
		for _, s := range list.skipped {
			set.Skipped = append(set.Skipped, SkippedTool{Server: e.ID, Name: s.Name, Reason: s.Reason})
		}
	}
	slices.SortStableFunc(set.Tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	// A server that lists a tool twice, and a catalog that lists a server twice,
	// mean the same tool; model APIs refuse the second.
	set.Tools = slices.CompactFunc(set.Tools, func(a, b Tool) bool { return a.Name == b.Name })
	slices.SortStableFunc(set.Failed, func(a, b *ServerError) int { return strings.Compare(a.Server, b.Server) })
	slices.SortStableFunc(set.Skipped, func(a, b SkippedTool) int { return strings.Compare(a.Server, b.Server) })
	return &assembly{entries: entries, lists: lists, set: set}
}

func appendTools(to []Tool, e *Entry, tools []mcp.Tool) []Tool {
	for i := range tools {
		if e.allows(tools[i].Name) {
			to = append(to, Tool{Name: ToolName(e.ID, tools[i].Name), Server: e.ID, Spec: &tools[i]})
		}
	}
	return to
}
