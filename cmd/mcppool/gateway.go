package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

// syncInterval is how often it is looked whether the servers' tools have changed.
const syncInterval = time.Second

// gateway is the MCP server that clients see: the tools of all servers, each call in the
// session of its conversation.
type gateway struct {
	pool   *mcppool.Pool
	box    *toolbox.Box
	talk   *talk
	header string // that names the conversation; empty: the client's session does
	log    *slog.Logger

	mcp     *mcpserver.MCPServer
	http    *mcpserver.StreamableHTTPServer
	clients *conversations
	idle    time.Duration   // after which an unused one ends
	ctx     context.Context // ends with the gateway
	stop    context.CancelFunc
	syncing sync.WaitGroup

	mu       sync.Mutex // protects the fields below
	shown    *toolbox.ToolSet
	callable map[string]bool // the names that mcp knows; toolsFor says which a client sees
}

// talk is what goes on between servers and clients besides calls.
type talk struct {
	router *toolbox.Router
	calls  atomic.Uint64
	// progress has what is told of a call's progress, by the call's id.
	progress sync.Map // string to func(mcp.ProgressNotification)
}

func newTalk() *talk { return &talk{router: toolbox.NewRouter(toolbox.Handlers{})} }

func newGateway(pool *mcppool.Pool, catalog toolbox.Catalog, t *talk, o *serveOptions, log *slog.Logger) (*gateway, error) {
	g := &gateway{pool: pool, talk: t, header: o.header, log: log, idle: o.idle, callable: make(map[string]bool)}
	g.clients = newConversations(g.over)
	var err error
	g.box, err = toolbox.New(pool, catalog, &toolbox.Options{Router: t.router, OnProgress: t.progressed})
	if err != nil {
		return nil, err
	}
	g.mcp = mcpserver.NewMCPServer("mcppool", mcppool.Version,
		mcpserver.WithToolCapabilities(true), mcpserver.WithToolFilter(g.toolsFor), mcpserver.WithRecovery())
	g.http = mcpserver.NewStreamableHTTPServer(g.mcp, mcpserver.WithSessionIdManager(g.clients),
		mcpserver.WithStreamableHTTPLogger(log),
		mcpserver.WithStreamableHTTPProtocolVersions(o.revisions()...),
		mcpserver.WithDisableLocalhostProtection(true)) // web.go has it
	g.ctx, g.stop = context.WithCancel(context.Background())
	g.syncing.Go(g.sync)
	return g, nil
}

// ServeHTTP is the endpoint.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodDelete {
		defer g.clients.use(r.Header.Get(mcpserver.HeaderKeySessionID))()
	}
	g.http.ServeHTTP(w, r)
}

// expire ends the sessions of clients that are unused, as those would themselves.
func (g *gateway) expire() {
	for id := g.clients.unused(g.idle); id != "" && g.ctx.Err() == nil; id = g.clients.unused(g.idle) {
		r, err := http.NewRequestWithContext(g.ctx, http.MethodDelete, "/mcp", nil)
		if err != nil {
			panic("bug: " + err.Error()) // the request is ours
		}
		r.Header.Set(mcpserver.HeaderKeySessionID, id)
		g.http.ServeHTTP(discard{}, r)
		_, _ = g.clients.Terminate(id) // it has ended; or the other side takes the request for a bad one
	}
}

// discard is what nobody reads.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

// close comes after the last request.
func (g *gateway) close() {
	g.stop()
	g.syncing.Wait()
	_ = g.http.Shutdown(context.Background())
	_ = g.box.Close()
}

// sync shows clients which tools there are, for as long as the gateway serves.
func (g *gateway) sync() {
	tick := time.NewTicker(syncInterval)
	defer tick.Stop()
	for {
		if set, err := g.box.Tools(g.ctx); err == nil {
			g.show(set)
		}
		g.expire()
		select {
		case <-tick.C:
		case <-g.ctx.Done():
			return
		}
	}
}

// show makes the tools of set known; clients that listen are told of a change.
func (g *gateway) show(set *toolbox.ToolSet) {
	g.mu.Lock()
	changed := g.shown != set
	g.shown = set
	g.mu.Unlock()
	if !changed {
		return
	}
	for _, failed := range set.Failed {
		if !errors.Is(failed, toolbox.ErrListing) {
			g.log.Warn("a server doesn't list its tools", slog.String("server", failed.Server), slog.String("err", failed.Err.Error()))
		}
	}
	g.enable(set)
	g.mcp.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
}

// enable has mcp know the tools of set. A name stays known: whether there is such a tool
// is the box's to say.
func (g *gateway) enable(set *toolbox.ToolSet) {
	var more []mcpserver.ServerTool
	g.mu.Lock()
	for i := range set.Tools {
		if t := &set.Tools[i]; !g.callable[t.Name] {
			g.callable[t.Name] = true
			more = append(more, mcpserver.ServerTool{Tool: shownAs(t), Handler: g.call})
		}
	}
	g.mu.Unlock()
	if len(more) > 0 {
		g.mcp.AddTools(more...)
	}
}

// shownAs is a tool as the server describes it, under the name that it has here.
func shownAs(t *toolbox.Tool) mcp.Tool {
	tool := *t.Spec
	tool.Name = t.Name
	return tool
}

// toolsFor is what a client sees: the tools that its own sessions offer.
func (g *gateway) toolsFor(ctx context.Context, all []mcp.Tool) []mcp.Tool {
	set, err := g.box.ToolsFor(ctx, g.conversation(ctx, ""))
	if err != nil {
		return all
	}
	g.enable(set)
	tools := make([]mcp.Tool, len(set.Tools))
	for i := range set.Tools {
		tools[i] = shownAs(&set.Tools[i])
	}
	return tools
}

// revisions are those of the protocol that are spoken: without a header for the
// conversation those that have sessions.
func (o *serveOptions) revisions() []string {
	if o.header != "" {
		return nil // all
	}
	return slices.DeleteFunc(slices.Clone(mcp.ValidProtocolVersions), mcp.IsModernProtocol)
}

// conversation says whose state a request meets.
func (g *gateway) conversation(ctx context.Context, named string) toolbox.Conversation {
	if g.header != "" {
		return toolbox.Conversation{Project: "header", Thread: named}
	}
	if s := mcpserver.ClientSessionFromContext(ctx); s != nil {
		return toolbox.Conversation{Project: "session", Thread: s.SessionID()}
	}
	return toolbox.Conversation{}
}

// over is called when a client's session has ended.
func (g *gateway) over(session string) {
	conv := toolbox.Conversation{Project: "session", Thread: session}
	g.pool.CloseScope(conv.Scope())
	g.box.Forget(conv)
}

// call answers tools/call.
func (g *gateway) call(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	args := req.Params.RawArguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	id := strconv.FormatUint(g.talk.calls.Add(1), 10)
	if meta := req.Params.Meta; meta != nil && meta.ProgressToken != nil {
		g.talk.progress.Store(id, func(n mcp.ProgressNotification) { g.tell(ctx, meta.ProgressToken, n) })
		defer g.talk.progress.Delete(id)
	}
	conv := g.conversation(ctx, req.Header.Get(g.header))
	out := g.box.DispatchAll(ctx, []toolbox.ToolCall{{ID: id, Name: req.Params.Name, Args: args}}, conv)[0]
	switch {
	case out.Result == nil:
		return mcp.NewToolResultError(out.Text), nil
	case out.Fresh:
		res := *out.Result
		res.Content = append(append([]mcp.Content(nil), res.Content...), mcp.NewTextContent(stateGone))
		return &res, nil
	default:
		return out.Result, nil
	}
}

// stateGone is said behind the first result of a session that isn't the one before.
const stateGone = "[This server was started anew since the last call of it: what it held then is gone.]"

// progressed passes progress on to the client that wants it.
func (t *talk) progressed(_ toolbox.Conversation, call toolbox.ToolCall, n mcp.ProgressNotification) {
	if tell, ok := t.progress.Load(call.ID); ok {
		tell.(func(mcp.ProgressNotification))(n)
	}
}

// tell sends progress to the client of a call, under the token that it gave.
func (g *gateway) tell(ctx context.Context, token mcp.ProgressToken, n mcp.ProgressNotification) {
	params := map[string]any{"progressToken": token, "progress": n.Params.Progress}
	if n.Params.Total != 0 {
		params["total"] = n.Params.Total
	}
	if n.Params.Message != "" {
		params["message"] = n.Params.Message
	}
	_ = g.mcp.SendNotificationToClient(ctx, "notifications/progress", params) // one that has left misses nothing
}
