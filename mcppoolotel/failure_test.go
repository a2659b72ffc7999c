package mcppoolotel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppoolotel"
)

func TestEachFailureHasItsErrorType(t *testing.T) {
	type outcome struct {
		kind, code, text string
		sent             bool // so that it is in the metric of operations
	}
	answers := func(res *mcp.CallToolResult, err error) *fakes {
		return &fakes{call: func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return res, err }}
	}
	for name, tc := range map[string]struct {
		f    *fakes
		opts mcppool.Options
		srv  mcppool.Server
		do   func(b *bench)
		want outcome
	}{
		"tool error":     {f: answers(mcp.NewToolResultError("secret of the tool"), nil), want: outcome{kind: "tool_error", sent: true}},
		"JSON-RPC error": {f: answers(nil, &mcppool.RPCError{Code: -32602, Message: "no\nsuch \xfftool"}), want: outcome{"-32602", "-32602", "no\uFFFDsuch \uFFFDtool", true}},
		"undecodable":    {f: answers(nil, errors.New("secret of the server")), want: outcome{kind: "_OTHER", sent: true}},
		"lost": {f: &fakes{call: func(_ context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			c.Close()
			return nil, errors.New("secret of the server")
		}}, want: outcome{kind: "session_lost", text: "the session was lost", sent: true}},
		"timeout":   {f: &fakes{call: slowCalls(time.Hour)}, want: outcome{kind: "timeout", text: "context deadline exceeded", sent: true}},
		"too late":  {f: &fakes{connectTime: time.Hour}, opts: mcppool.Options{ConnectTimeout: -1}, want: outcome{kind: "timeout", text: "context deadline exceeded"}},
		"cancelled": {f: &fakes{call: slowCalls(time.Hour)}, do: func(b *bench) {}, want: outcome{kind: "cancelled", text: "context canceled", sent: true}},
		"closed": {f: &fakes{call: slowCalls(time.Hour)}, do: func(b *bench) { b.pool.CloseServer(stdio) },
			want: outcome{kind: "server_closed", text: mcppool.ErrServerClosed.Error(), sent: true}},
		"pool closed": {f: &fakes{call: slowCalls(time.Hour)}, do: func(b *bench) { b.pool.Close() },
			want: outcome{kind: "pool_closed", text: mcppool.ErrClosed.Error(), sent: true}},
		"start failed": {f: &fakes{connectErr: &mcppool.RPCError{Code: -32000, Message: "secret of the server"}},
			want: outcome{kind: "start_failed", text: "the server did not connect"}},
		"bad input": {f: &fakes{}, srv: mcppool.Server{Command: "a\x00b"}, want: outcome{kind: "invalid_config", text: "mcppool: Server.Command contains a NUL byte"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tc.f, tc.opts, mcppoolotel.Options{})
				if tc.srv.Command == "" {
					tc.srv = stdio
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					b.call(ctx, tc.srv, "open")
				}()
				if tc.do != nil {
					synctest.Wait()
					tc.do(b)
					cancel()
				}
				<-ended
				span := b.one(t, "tools/call open")
				got := outcome{text: span.Status().Description}
				got.kind, _ = attrs(span)["error.type"].(string)
				got.code, _ = attrs(span)["rpc.response.status_code"].(string)
				operations := points(b.collect(t)["mcp.client.operation.duration"])
				for labels := range operations {
					got.sent = strings.Contains(labels, "error.type="+got.kind)
					require.Equal(t, got.code != "", strings.Contains(labels, "rpc.response.status_code="), labels)
				}
				require.Equal(t, tc.want, got)
				require.Equal(t, codes.Error, span.Status().Code)
				for _, s := range b.spans.Ended() {
					require.NotContains(t, fmt.Sprint(s.Attributes(), s.Status()), "secret")
				}
			})
		})
	}
}

func TestBusyIsAnErrorType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := mcppool.Limits{MaxProcesses: 1, MaxWait: time.Second}
		b := newBench(t, &fakes{call: slowCalls(time.Hour)}, mcppool.Options{Limits: limits}, mcppoolotel.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); b.call(ctx, stdio, "first") }()
		synctest.Wait()
		_, err := b.tools.CallTool(t.Context(), stdio, mcppool.Call{Tool: "second", Scope: "another"})
		require.ErrorIs(t, err, mcppool.ErrBusy)
		require.Equal(t, "busy", attrs(b.one(t, "tools/call second"))["error.type"])
		cancel()
		<-ended
	})
}

func TestASessionThatEndsBadlyHasAnErrorType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &fakes{call: slowCalls(time.Hour)}, mcppool.Options{}, mcppoolotel.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, b.call(ctx, stdio, "open"))
		synctest.Wait()
		require.Equal(t, map[string]float64{"error.type=timeout,mcppool.server=browser,network.transport=pipe": 1}, points(b.collect(t)["mcp.client.session.duration"]))
	})
}
