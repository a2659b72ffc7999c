package toolbox

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// ToolSet is what [Box.Tools] gives. It is shared with other callers, so nobody
// may change it, or what it points to.
type ToolSet struct {
	// Tools are sorted by Name.
	Tools []Tool
	// Failed are the servers whose tools aren't among them, by ID.
	Failed []*ServerError
}

// Tool is one tool of one server.
type Tool struct {
	// Name is what the model calls it, and what [Box.Dispatch] takes.
	Name string
	// Server is the id of its server.
	Server string
	// Spec is the tool as its server describes it, its own name included.
	Spec *mcp.Tool
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
	return "toolbox: server " + oneLine(e.Server, maxNamed) + ": " + why
}

func (e *ServerError) Unwrap() error { return e.Err }

// Tools lists the tools of all enabled servers. Servers that haven't listed
// theirs yet are asked at once, each by a session of its own that ends with it.
// One that fails, or hasn't answered within [Options.ListTimeout] or ctx, is
// among Failed. The error is the catalog's, or ctx's when it was over from the
// start.
func (b *Box) Tools(ctx context.Context) (*ToolSet, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := b.catalog.List(ctx)
	if err != nil {
		return nil, err
	}
	lists := b.listings.current(entries)
	var wg sync.WaitGroup
	for i := range entries {
		if lists[i] == nil && entries[i].usable() {
			wg.Go(func() { lists[i] = b.listings.get(ctx, &entries[i].Server) })
		}
	}
	wg.Wait()
	if last := b.last.Load(); last != nil && last.isOf(entries, lists) {
		return last.set, nil
	}
	a := assemble(entries, lists)
	b.last.Store(a)
	return a.set, nil
}

// Refresh is Tools with every server asked anew, those included that failed a
// moment ago.
func (b *Box) Refresh(ctx context.Context) (*ToolSet, error) {
	b.listings.renew(func(*listing) bool { return true })
	return b.Tools(ctx)
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
		switch {
		case e.Err != nil && !e.Disabled:
			set.Failed = append(set.Failed, &ServerError{Server: e.ID, Err: e.Err})
		case list == nil:
		case list.err != nil:
			set.Failed = append(set.Failed, &ServerError{Server: e.ID, Err: list.err})
		default:
			set.Tools = appendTools(set.Tools, e, list.tools)
		}
	}
	slices.SortStableFunc(set.Tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	// A server that lists a tool twice, and a catalog that lists a server twice,
	// mean the same tool; model APIs refuse the second.
	set.Tools = slices.CompactFunc(set.Tools, func(a, b Tool) bool { return a.Name == b.Name })
	slices.SortStableFunc(set.Failed, func(a, b *ServerError) int { return strings.Compare(a.Server, b.Server) })
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
