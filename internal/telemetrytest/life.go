package telemetrytest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// Caller is a pool, or what a module wraps around it.
type Caller interface {
	CallTool(ctx context.Context, srv mcppool.Server, call mcppool.Call) (*mcp.CallToolResult, error)
}

// Life is a pool that is used in all ways, with servers that hold secrets. The
// pool has Options.MaxSessions 1.
type Life struct {
	T      testing.TB
	Pool   *mcppool.Pool
	Caller Caller
}

// Call calls a tool with a secret argument. The result, if there is one, must
// have the server's secrets: it is the caller's.
func (l *Life) Call(srv mcppool.Server, tool, scope string) error {
	l.T.Helper()
	patience := time.Minute
	if tool == "hang" {
		patience = 50 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	res, err := l.Caller.CallTool(ctx, srv, mcppool.Call{
		Tool: tool, Scope: scope, Args: map[string]string{"password": secret("argument")},
	})
	if err != nil {
		return err
	}
	if text, ok := res.Content[0].(mcp.TextContent); !ok || !strings.Contains(text.Text, Mark) {
		l.T.Fatalf("%s: the result lacks the secrets: %v", tool, res.Content)
	}
	return nil
}

// UseChild calls a [Secretive] server of the kind [Raw] so that each outcome of a
// call comes once at least: ok, a tool's error, a JSON-RPC error (of the tool
// "missing"), a timeout, a lost session. One session is evicted, one is a one-shot.
func (l *Life) UseChild(srv mcppool.Server) {
	l.T.Helper()
	for _, call := range [][2]string{{"tell", Mark + " scope"}, {"fail", Mark + " scope"}, {"tell", ""}, {"tell", "another"}} {
		if err := l.Call(srv, call[0], call[1]); err != nil {
			l.T.Fatalf("%s: %v", call[0], err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); l.Pool.Stats().Closed[mcppool.ReasonLRU] == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			l.T.Fatal("no session was evicted")
		}
	}
	var refused *mcppool.RPCError
	err := l.Call(srv, "missing", "another")
	l.requireSecrets(err, errors.As(err, &refused) && strings.Contains(refused.Message, "[redacted]"))
	err = l.Call(srv, "hang", "another")
	l.requireSecrets(err, errors.Is(err, context.DeadlineExceeded))
	var lost *mcppool.SessionLostError
	err = l.Call(srv, "die", "another")
	l.requireSecrets(err, errors.As(err, &lost) && strings.Contains(lost.Stderr, "[redacted]"))
}

// requireSecrets ends the test unless err is what it has to be: one of a server
// that had secrets to tell.
func (l *Life) requireSecrets(err error, as bool) {
	l.T.Helper()
	if !as {
		l.T.Fatalf("not the error of this life: %v", err)
	}
}

// UseWeb calls servers at URLs: one that works, whose tool "refuse" fails, one that
// refuses all, which it returns, and one that isn't there.
func (l *Life) UseWeb() (closed mcppool.Server) {
	l.T.Helper()
	base := web(l.T)
	ok := secretiveAt(l.T, base+"/ok")
	if err := l.Call(ok, "tell", ""); err != nil {
		l.T.Fatal(err)
	}
	var refused *mcppool.RPCError
	err := l.Call(ok, "refuse", "")
	l.requireSecrets(err, errors.As(err, &refused))
	closed = secretiveAt(l.T, base+"/closed")
	for _, srv := range []mcppool.Server{closed, secretiveAt(l.T, "http://127.0.0.1:1/")} {
		err := l.Call(srv, "tell", "")
		l.requireSecrets(err, err != nil)
	}
	return closed
}
