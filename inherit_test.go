package mcppool_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestInheritedVariablesAreNotTold(t *testing.T) {
	for _, inherit := range []string{"TOKEN", "*"} {
		t.Run(inherit, func(t *testing.T) {
			t.Setenv("TOKEN", secret("inherited"))
			l := newLife(t, mcppool.Options{InheritEnv: []string{inherit}})
			err := l.call(real(t, "exits at once"), mcppool.Call{Tool: "t", Scope: "s"})
			var failed *mcppool.StartError
			require.ErrorAs(t, err, &failed)
			require.Contains(t, failed.Stderr, "cannot start: token is [redacted]")
			l.error("error", err)
			t.Setenv("TOKEN", secret("rotated"))
			l.error("error", l.call(real(t, "exits at once"), mcppool.Call{Tool: "t", Scope: "s"}))
		})
	}
}

func TestErrorsOfACustomClientTellNoSecret(t *testing.T) {
	token := secret("env")
	srv := mcppool.Server{Command: "c", Env: map[string]string{"TOKEN": token}}
	told := errors.New("refused: " + token)
	for what, err := range map[string]error{
		"plain":    told,
		"answer":   &mcppool.RPCError{Code: 7, Message: told.Error(), Data: fmt.Appendf(nil, `{"token":%q}`, token)},
		"not sent": mcppool.MarkNotSent(told),
		"loss":     nil,
	} {
		t.Run(what, func(t *testing.T) {
			f := &fakes{}
			f.call = func(_ context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if err == nil {
					c.lose(told)
					return nil, told
				}
				return nil, err
			}
			f.list = func(mcp.ListToolsRequest) (*mcp.ListToolsResult, error) { return nil, told }
			var e ear
			p := newPool(t, f, &mcppool.Options{Logger: e.logger(), Trace: e.trace()})
			_, got := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "t", Scope: "s"})
			require.Error(t, got)
			e.error("error", got)
			if what == "answer" {
				var answer *mcppool.RPCError
				require.ErrorAs(t, got, &answer)
				require.Equal(t, 7, answer.Code)
				require.JSONEq(t, `{"token":"[redacted]"}`, string(answer.Data))
			}
			require.Equal(t, what == "not sent", mcppool.SafeToRetry(got))
			e.sessions(p)
			require.NoError(t, p.Close())
			require.Empty(t, e.mentions(mark))
		})
	}
}

func TestStartErrorOfACustomDialIsNotWrittenTo(t *testing.T) {
	token := secret("env")
	shared := &mcppool.StartError{Phase: "start", Stderr: token, Err: errors.New(token)}
	p := newPool(t, &fakes{connectErr: shared}, nil)
	err := call(t.Context(), p, mcppool.Server{Command: "c", Env: map[string]string{"TOKEN": token}}, "s")
	var got *mcppool.StartError
	require.ErrorAs(t, err, &got)
	require.NotSame(t, shared, got)
	require.Equal(t, "[redacted]", got.Stderr)
	require.Empty(t, shared.Server)
	var e ear
	e.error("error", err)
	require.Empty(t, e.mentions(mark))
}
