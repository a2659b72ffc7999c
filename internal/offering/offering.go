// Package offering is an MCP server for tests that offers something of
// everything, in every revision of the protocol. As the server of mcppooltest it is
// part of the test binary, which becomes the server when Env is in its environment.
package offering

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const variable = "MCPPOOL_OFFERING"

// Env returns the environment entry that makes Main a server.
func Env() (name, value string) { return variable, "1" }

// Main runs the server until the end of its input and reports true, if the
// environment says so.
func Main() bool {
	if os.Getenv(variable) == "" {
		return false
	}
	_ = server.ServeStdio(New()) // it ends when its input does
	return true
}

// Instructions are those of the server, whose name is "offering" and whose
// version is "1.2.3".
const Instructions = "Ask for anything."

// URI is a resource; there are others, so that a list has more than one page.
// URI + "/missing" can't be read.
const URI = "note://1"

// New makes the server. Its tools:
//
//	pid          of its process
//	subscribed   the URIs that it is asked to tell of
//	touch {uri}  reports a change, and answers with whether it was asked to
//	level        the level of the log messages that it sends
//	addtool      has a new tool from now on
func New() *server.MCPServer {
	subs := &subscriptions{}
	s := server.NewMCPServer("offering", "1.2.3",
		server.WithInstructions(Instructions),
		server.WithToolCapabilities(true),
		server.WithResourceCapabilities(true, true),
		server.WithPromptCapabilities(true),
		server.WithLogging(),
		server.WithCompletions(),
		server.WithPromptCompletionProvider(completions{}),
		server.WithPaginationLimit(2),
		server.WithHooks(subs.hooks()),
	)
	read := func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		if strings.HasSuffix(req.Params.URI, "/missing") {
			return nil, errors.New("no such note")
		}
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: req.Params.URI, Text: "text of " + req.Params.URI}}, nil
	}
	for _, uri := range []string{URI, "note://2", "note://3", URI + "/missing"} {
		s.AddResource(mcp.NewResource(uri, "note "+uri), read)
	}
	s.AddResourceTemplate(mcp.NewResourceTemplate("note://{n}", "a note"), read)
	s.AddPrompt(mcp.NewPrompt("greet", mcp.WithArgument("name")),
		func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := "Hello " + req.Params.Arguments["name"]
			return mcp.NewGetPromptResult("", []mcp.PromptMessage{
				mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(text)),
			}), nil
		})
	addTools(s, subs)
	return s
}

func addTools(s *server.MCPServer, subs *subscriptions) {
	add := func(name string, f func(context.Context, mcp.CallToolRequest) string) {
		s.AddTool(mcp.NewTool(name), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(f(ctx, req)), nil
		})
	}
	add("pid", func(context.Context, mcp.CallToolRequest) string { return strconv.Itoa(os.Getpid()) })
	add("subscribed", func(context.Context, mcp.CallToolRequest) string { return strings.Join(subs.all(), " ") })
	add("touch", func(ctx context.Context, req mcp.CallToolRequest) string {
		uri := req.GetString("uri", "")
		if !slices.Contains(subs.all(), uri) {
			return "false"
		}
		if err := s.SendNotificationToClient(ctx, "notifications/resources/updated", map[string]any{"uri": uri}); err != nil {
			return err.Error()
		}
		return "true"
	})
	add("level", func(ctx context.Context, req mcp.CallToolRequest) string {
		if req.Params.Meta != nil {
			if level, ok := req.Params.Meta.AdditionalFields[mcp.MetaKeyLogLevel].(string); ok {
				return level
			}
		}
		if l, ok := server.ClientSessionFromContext(ctx).(server.SessionWithLogging); ok {
			return string(l.GetLogLevel())
		}
		return ""
	})
	add("addtool", func(context.Context, mcp.CallToolRequest) string {
		add("added", func(context.Context, mcp.CallToolRequest) string { return "added" })
		return "done"
	})
}

type completions struct{}

func (completions) CompletePromptArgument(_ context.Context, _ string, arg mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	return &mcp.Completion{Values: []string{arg.Value + "da"}}, nil
}

// subscriptions are the resources that the client wants to hear of, each as
// often as it said so.
type subscriptions struct {
	mu   sync.Mutex // protects uris
	uris []string
}

func (s *subscriptions) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.uris)
}

func (s *subscriptions) add(uris ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uris = append(s.uris, uris...)
}

func (s *subscriptions) remove(uris ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, uri := range uris {
		if i := slices.Index(s.uris, uri); i >= 0 {
			s.uris = slices.Delete(s.uris, i, i+1)
		}
	}
}

func (s *subscriptions) hooks() *server.Hooks {
	h := &server.Hooks{}
	h.AddBeforeSubscriptionsListen(func(_ context.Context, _ any, req *mcp.SubscriptionsListenRequest) {
		s.add(req.Params.Notifications.ResourceSubscriptions...)
	})
	h.AddAfterSubscriptionsListen(func(_ context.Context, _ any, req *mcp.SubscriptionsListenRequest, _ *mcp.SubscriptionsListenResult) {
		s.remove(req.Params.Notifications.ResourceSubscriptions...)
	})
	h.AddAfterSubscribe(func(_ context.Context, _ any, req *mcp.SubscribeRequest, _ *mcp.EmptyResult) {
		s.add(req.Params.URI)
	})
	h.AddAfterUnsubscribe(func(_ context.Context, _ any, req *mcp.UnsubscribeRequest, _ *mcp.EmptyResult) {
		s.remove(req.Params.URI)
	})
	return h
}
