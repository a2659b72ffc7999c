// Package rpc is what the connections to MCP servers have in common, whether they
// are child processes (internal/mcpconn) or reached at a URL (internal/httpconn):
// the interface, what its methods take, their errors, and the typed requests that
// are made of it.
package rpc

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// Conn is one connection. Its methods may be called from any goroutine.
//
// The errors of its requests are [*Error], the server's own; [*NotSentError];
// [*AnswerError]; [*ConfigError]; [*StatusError]; ctx's; and errors that are [ErrLost].
type Conn interface {
	// Request makes one request, whose params are a JSON object or nil, and
	// returns its result undecoded.
	Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Notify sends a notification, whose params are a JSON object or nil.
	Notify(ctx context.Context, method string, params json.RawMessage) error
	// CallTool is tools/call, and goes on with a call whose result asks for input.
	CallTool(ctx context.Context, call ToolCall) (*mcp.CallToolResult, error)
	// ListTools returns one page of tools.
	ListTools(ctx context.Context, req mcp.ListToolsRequest) (*ToolList, error)
	// SetLevel, Subscribe and Unsubscribe do the same in both eras.
	SetLevel(ctx context.Context, req mcp.SetLevelRequest) error
	Subscribe(ctx context.Context, req mcp.SubscribeRequest) error
	Unsubscribe(ctx context.Context, req mcp.UnsubscribeRequest) error
	// Probe reports whether the server is alive: nil, or why it isn't known to be.
	Probe(ctx context.Context) error

	// Info is what the server said of itself. It must not be changed.
	Info() *mcp.InitializeResult
	// Done is closed once the connection is lost for good, and by Close. Err is
	// why, after Done.
	Done() <-chan struct{}
	Err() error
	// Close ends the connection and returns once nothing of it is left running.
	Close() error

	// Pid is the process id of a child, 0 for a server at a URL.
	Pid() int
	// RSS is the resident memory of a child's process tree, in bytes. ok is false
	// where it can't be known: for a server at a URL, on other systems than Linux,
	// after the end.
	RSS() (bytes int64, ok bool)
	// Death is what is known of the end of a child, or of one that lives.
	Death() Death
}

// Config is what connections of both kinds are told. The funcs run on goroutines of
// the connection, which Close waits for.
type Config struct {
	Era        Era
	ClientInfo mcp.Implementation
	// Hurry is when whoever asked for the connection loses patience, if that is
	// before the end of the ctx of its Dial: a server of unknown era is then asked the
	// second question sooner. Zero for none.
	Hurry    time.Time
	Handlers Handlers
	// UnknownContent makes a block of a type that mcp-go doesn't know. Nil makes a
	// result with one an error.
	UnknownContent func(typ string, raw json.RawMessage) mcp.Content
	OnPanic        func(v any, stack []byte) // a handler panicked; required
}

// Death is how the process of a child ended, and its last words.
type Death struct {
	Exit   string // such as "exit status 3", empty if it isn't known to have ended
	Stderr string // what it wrote there last
	Stdout string // the last of what it wrote there that is no message
}

// ToolCall is one tools/call.
type ToolCall struct {
	Tool string
	Args json.RawMessage // a JSON object, as one line; nil is sent as {}
	Meta *mcp.Meta       // nil for none but what the protocol asks for
	// Gate is asked right before the bytes go to a child; an error of it refuses
	// the call. It must be quick, and may run on any goroutine. Nil means none. For
	// a server at a URL it isn't asked.
	Gate func() error
	// OnProgress is called with the progress of the call, in order, all of it before
	// the call returns. When ctx ends the call still waits for one that runs.
	OnProgress func(mcp.ProgressNotification)
	// ID, unless it is nil, is set to the id of the request, of a call in several
	// rounds to the last one's. For a server at a URL it isn't.
	ID *int64
}

// Handlers answer what the server asks. A nil one isn't offered to it. Their ctx
// ends with the connection, with the request that they serve, and when the server
// cancels that.
type Handlers struct {
	Sampling    func(ctx context.Context, req mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error)
	Elicitation func(ctx context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error)
	Roots       func(ctx context.Context) ([]mcp.Root, error)
	// Notification is called with all notifications but progress, one at a time and
	// in order.
	Notification func(n mcp.JSONRPCNotification)
}

// Capabilities are what the handlers let a client offer.
func (h *Handlers) Capabilities() (caps mcp.ClientCapabilities) {
	if h.Sampling != nil {
		caps.Sampling = &mcp.SamplingCapability{}
	}
	if h.Elicitation != nil {
		caps.Elicitation = &mcp.ElicitationCapability{}
	}
	if h.Roots != nil {
		caps.Roots = &struct {
			ListChanged bool `json:"listChanged,omitempty"`
		}{ListChanged: true}
	}
	return caps
}

// ToolList is one page of tools/list.
type ToolList struct {
	mcp.ListToolsResult
	Skipped []SkippedTool // what is no tool, and so isn't among the Tools
}

// SkippedTool is an entry of tools/list that can't be understood.
type SkippedTool struct {
	Name   string // empty when it has none
	Reason string
}
