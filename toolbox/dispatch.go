package toolbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/jsonscan"
	"github.com/mcppool/mcppool/internal/modelapi"
)

// Conversation says whose state a call meets: the same conversation finds the
// browser page or the shell as its last call left it, another one never does.
type Conversation struct {
	Project string // may be empty
	Thread  string // empty: no state is kept, each call gets a session of its own
}

// Scope is the conversation's scope in the pool.
func (c Conversation) Scope() string { return mcppool.Scope(c.Project, c.Thread) }

// ToolCall is what a model called.
type ToolCall struct {
	// ID is the model API's id of the call. It is only passed on.
	ID string
	// Name is the tool's name as [Box.Tools] gave it.
	Name string
	// Args is a JSON object, as the model wrote it. Empty means {}.
	Args json.RawMessage
}

// Output is the outcome of a call.
type Output struct {
	Content
	// Err is why there is no result; nil when there is one, even if the tool
	// failed. It is for the program and its logs: what the model may know of it
	// is in Text.
	Err error
	// Server and Tool are what the name stood for, as far as that was found out.
	Server, Tool string
	// Result is the result as the server gave it; nil when there is none.
	Result *mcp.CallToolResult
	// Fresh says that the conversation's last call of the server met another session,
	// which has ended since: what it held is gone. Text says so too. Follows is why that
	// ended, as in [mcppool.Served].
	Fresh   bool
	Follows mcppool.CloseReason
}

// The errors of calls for which nothing was started.
var (
	// ErrBadName: the name isn't one that a tool can have.
	ErrBadName = errors.New("toolbox: not the name of an MCP tool")
	// ErrServerDisabled: the server's entry is disabled.
	ErrServerDisabled = errors.New("toolbox: MCP server is disabled")
	// ErrUnknownTool: the server has no such tool.
	ErrUnknownTool = errors.New("toolbox: unknown tool")
	// ErrToolDenied: the server's entry doesn't allow the tool.
	ErrToolDenied = errors.New("toolbox: tool is not allowed")
)

// ErrInputRequired says that the server wants answers before it goes on, in a way
// of the revision 2026-07-28 that isn't offered here. It has been called.
var ErrInputRequired = errors.New("toolbox: MCP server requires input")

// ArgsError is arguments that can't be sent. Nothing was started.
type ArgsError struct{ Err error }

func (e *ArgsError) Error() string { return "toolbox: invalid arguments: " + e.Err.Error() }
func (e *ArgsError) Unwrap() error { return e.Err }

// Dispatch calls the tool that a model named, in the session of the
// conversation, and answers in every case with a text for the model. The
// server's entry is looked up now and again right before the call is sent: when
// it was changed, disabled or removed in between, the call fails and no session
// of the old entry stays. A call is never sent twice.
func (b *Box) Dispatch(ctx context.Context, name string, args json.RawMessage, conv Conversation) Output {
	return b.dispatch(ctx, &ToolCall{Name: name, Args: args}, conv)
}

// DispatchAll runs the calls of one turn of a conversation and returns their
// outputs in the same order. Calls of different servers run at the same time.
// Those of one server run in their order, one after the other, unless the
// conversation has no thread: then they share no state and run at once.
func (b *Box) DispatchAll(ctx context.Context, calls []ToolCall, conv Conversation) []Output {
	outs := make([]Output, len(calls))
	queues := make(map[string][]int) // of calls, by server
	for i := range calls {
		server, _, _ := splitName(calls[i].Name)
		queues[server] = append(queues[server], i)
	}
	var wg sync.WaitGroup
	for _, queue := range queues {
		if conv.Thread == "" {
			for _, i := range queue {
				wg.Go(func() { outs[i] = b.dispatch(ctx, &calls[i], conv) })
			}
			continue
		}
		wg.Go(func() {
			for _, i := range queue {
				outs[i] = b.dispatch(ctx, &calls[i], conv)
			}
		})
	}
	wg.Wait()
	return outs
}

func (b *Box) dispatch(ctx context.Context, call *ToolCall, conv Conversation) Output {
	if call.Name == SearchTool && b.opts.Search != nil {
		return b.dispatchSearch(ctx, call, conv)
	}
	serverPart, toolPart, ok := splitName(call.Name)
	if !ok {
		return failed("", call.Name, ErrBadName, 0)
	}
	args, err := checkArgs(call.Args)
	if err != nil {
		return failed("", toolPart, err, 0)
	}
	entry, err := b.find(ctx, serverPart)
	if err != nil {
		return failed(serverPart, toolPart, err, 0)
	}
	ctx, budget, cancel := b.budget(ctx, &entry)
	defer cancel()
	scope := conv.Scope()
	tool, args, err := b.tool(ctx, &entry, wanted{part: toolPart, args: args, scope: scope})
	if err != nil {
		return failed(entry.ID, tool, err, budget)
	}
	var from mcppool.Served
	c := mcppool.Call{Tool: tool, Args: args, Scope: scope, Check: b.check(ctx, &entry, tool), Served: &from}
	if onProgress := b.opts.OnProgress; onProgress != nil {
		c.OnProgress = func(n mcp.ProgressNotification) { onProgress(conv, *call, n) }
	}
	res, err := b.caller.CallTool(ctx, entry.server(), c)
	out := b.output(ctx, &entry, outcome{tool: tool, res: res, err: err, budget: budget})
	if b.isFresh(&entry, from.Origin) {
		out.Fresh, out.Follows = true, from.Follows
		out.Text += freshNote
	}
	return out
}

// outcome is what became of a call.
type outcome struct {
	tool   string
	res    *mcp.CallToolResult
	err    error
	budget time.Duration
}

func (b *Box) output(ctx context.Context, e *Entry, o outcome) Output {
	if o.err != nil {
		if errors.Is(o.err, mcppool.ErrServerClosed) {
			b.closeReplaced(ctx, e)
		}
		return failed(e.ID, o.tool, o.err, o.budget)
	}
	if o.res.ResultType == mcp.ResultTypeInputRequired {
		return failed(e.ID, o.tool, ErrInputRequired, o.budget)
	}
	return Output{Content: ReadResult(o.res, b.opts.Limits), Server: e.ID, Tool: o.tool, Result: o.res}
}

// freshNote is said to the model once, behind the first result of a session that is not
// the one that it has talked to before.
const freshNote = "\n[This MCP server was started anew since the last call of it: what it held then, such as open pages, variables and logins, is gone.]"

// isFresh notes which session served a call, and reports whether it is another one than
// that of the conversation's last call. Those of servers that keep no state by
// conversation don't count.
func (b *Box) isFresh(e *Entry, from mcppool.Origin) bool {
	if from.SessionID == "" || from.Scope == "" || from.HTTP || e.Server.Policy.Mode == mcppool.Shared {
		return false
	}
	if !b.talks.served(e.ID, from) {
		return false
	}
	b.listings.replaced(&e.Server, from.Scope)
	return true
}

// dispatchSearch answers a call of the box's own [SearchTool].
func (b *Box) dispatchSearch(ctx context.Context, call *ToolCall, conv Conversation) Output {
	set, err := b.allTools(ctx, conv, false)
	if err != nil {
		return failed("", SearchTool, err, 0)
	}
	return b.search(set, call.Args, conv)
}

var (
	errNotObject = errors.New("not a JSON object")
	errNoQuery   = errors.New("query is not a text")
)

// checkArgs returns the arguments as they are sent. What isn't an object is
// refused before anything is looked up.
func checkArgs(args json.RawMessage) (json.RawMessage, error) {
	text := bytes.TrimSpace(args)
	if len(text) == 0 || string(text) == "null" {
		return nil, nil // some models write nothing when a tool takes no arguments
	}
	if text[0] != '{' {
		return nil, &ArgsError{Err: errNotObject}
	}
	if err := jsonscan.Object(args); err != nil {
		return nil, &ArgsError{Err: err}
	}
	return args, nil
}

// find looks up the enabled entry that a name's server part stands for.
func (b *Box) find(ctx context.Context, part string) (Entry, error) {
	if isHashed(part) {
		return b.findHashed(ctx, part)
	}
	e, err := b.catalog.Lookup(ctx, part)
	if err == nil {
		err = e.unusable()
	}
	return e, err
}

func (b *Box) findHashed(ctx context.Context, part string) (Entry, error) {
	entries, err := b.catalog.List(ctx)
	if err != nil {
		return Entry{}, err
	}
	for i := range entries {
		if serverPartIs(part, entries[i].ID) && !entries[i].Disabled {
			return entries[i], entries[i].unusable()
		}
	}
	return Entry{}, ErrUnknownServer
}

// budget bounds ctx by the entry's timeout, and says how long the call has.
func (b *Box) budget(ctx context.Context, e *Entry) (context.Context, time.Duration, context.CancelFunc) {
	timeout := orDefault(e.Timeout, b.opts.callTimeout())
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); timeout < 0 || left <= timeout {
			return ctx, left, func() {}
		}
	}
	if timeout < 0 {
		return ctx, 0, func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return ctx, timeout, cancel
}

// wanted is a call as a model wrote it.
type wanted struct {
	part  string // of the name, for the tool
	args  json.RawMessage
	scope string
}

// tool finds the tool that a name's tool part stands for, whether it may be called, and
// its arguments as the server knows them. It asks the server only for what can't be read
// otherwise. On an error it returns the name as far as it is known.
func (b *Box) tool(ctx context.Context, e *Entry, call wanted) (tool string, args json.RawMessage, err error) {
	tool, args = call.part, call.args
	if isHashed(call.part) {
		var spec *mcp.Tool
		if spec, err = b.hashedTool(ctx, e, call); err != nil {
			return tool, nil, err
		}
		tool = spec.Name
	}
	if !e.allows(tool) {
		return tool, nil, ErrToolDenied
	}
	renamed := modelapi.HasRenamed(args)
	if !renamed && b.opts.Validate == nil {
		return tool, args, nil
	}
	is := func(t *mcp.Tool) bool { return t.Name == tool }
	spec := b.listings.cached(&e.Server, call.scope, is)
	if spec == nil && renamed {
		server := e.server()
		list := b.listings.get(ctx, &server)
		if i := findTool(list.tools, is); i >= 0 {
			spec = &list.tools[i]
		}
	}
	if spec == nil {
		return tool, args, nil
	}
	if renamed {
		args = modelapi.Restore(args, inputSchema(spec))
	}
	return tool, args, b.validate(spec, args)
}

func (b *Box) validate(spec *mcp.Tool, args json.RawMessage) error {
	if b.opts.Validate == nil {
		return nil
	}
	if args == nil {
		args = json.RawMessage("{}")
	}
	if err := b.opts.Validate(spec, args); err != nil {
		return &ArgsError{Err: err}
	}
	return nil
}

// hashedTool finds the tool whose name is written as a hash.
func (b *Box) hashedTool(ctx context.Context, e *Entry, call wanted) (*mcp.Tool, error) {
	is := func(t *mcp.Tool) bool { return toolPartIs(serverPart(e.ID), call.part, t.Name) }
	if spec := b.listings.cached(&e.Server, call.scope, is); spec != nil {
		return spec, nil
	}
	server := e.server()
	list := b.listings.get(ctx, &server)
	if i := findTool(list.tools, is); i >= 0 {
		return &list.tools[i], nil
	}
	if list.err != nil {
		return nil, list.err
	}
	return nil, ErrUnknownTool
}

func findTool(tools []mcp.Tool, is func(*mcp.Tool) bool) int {
	for i := range tools {
		if is(&tools[i]) {
			return i
		}
	}
	return -1
}

// check is the call's Check: is the entry still what the catalog says? Only a
// definite answer counts: a catalog that can't say right now must not cost a
// conversation its state.
func (b *Box) check(ctx context.Context, e *Entry, tool string) func() bool {
	return func() bool {
		now, err := b.catalog.Lookup(ctx, e.ID)
		if err != nil {
			return !errors.Is(err, ErrUnknownServer)
		}
		if now.Err != nil {
			return !now.Disabled
		}
		return !now.Disabled && now.allows(tool) && now.Server.Equal(e.Server)
	}
}

// closeReplaced closes the sessions of an entry's server that is no longer in
// the catalog.
func (b *Box) closeReplaced(ctx context.Context, e *Entry) {
	// The caller may have left, but the old sessions are to go all the same.
	entries, err := b.catalog.List(context.WithoutCancel(ctx))
	if err == nil && !uses(entries, &e.Server) {
		b.caller.CloseServer(e.Server)
	}
}
