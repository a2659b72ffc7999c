package toolbox_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool"
)

// modeEnv makes the test binary the server that it names.
const modeEnv = "MCPPOOL_TOOLBOX_SERVER"

func TestMain(m *testing.M) {
	switch os.Getenv(modeEnv) {
	case "asking":
		serveAsking()
		return
	case "weather":
		serveWeather()
		return
	}
	goleak.VerifyTestMain(m)
}

// asking is a real server that asks and tells its client all sorts of things.
func asking(t testing.TB) mcppool.Server {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// An instrumented binary waits for a second when it exits otherwise.
	return mcppool.Server{Protocol: mcppool.ProtocolLegacy, Command: exe, Env: map[string]string{modeEnv: "asking", "GORACE": "atexit_sleep_ms=0"}}
}

func serveAsking() {
	s := server.NewMCPServer("asking", "1", server.WithToolCapabilities(true), server.WithLogging(), server.WithElicitation(), server.WithRoots())
	s.EnableSampling()
	tool := func(name string, f func(context.Context, mcp.CallToolRequest) (any, error)) {
		s.AddTool(mcp.NewTool(name), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			got, err := f(ctx, req)
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			text, err := json.Marshal(got)
			return mcp.NewToolResultText(string(text)), err
		})
	}
	tool("sample", func(ctx context.Context, _ mcp.CallToolRequest) (any, error) {
		var req mcp.CreateMessageRequest
		req.MaxTokens = 10
		req.Messages = []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent("who am I?")}}
		res, err := s.RequestSampling(ctx, req)
		if err != nil {
			return nil, err
		}
		return res.Model, nil
	})
	tool("elicit", func(ctx context.Context, _ mcp.CallToolRequest) (any, error) {
		var req mcp.ElicitationRequest
		req.Params.Message = "sure?"
		req.Params.RequestedSchema = map[string]any{"type": "object", "properties": map[string]any{}}
		res, err := s.RequestElicitation(ctx, req)
		if err != nil {
			return nil, err
		}
		return res.Action, nil
	})
	s.AddTool(mcp.NewTool("input"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if answer, ok := req.Params.InputResponses["r"]; ok && req.Params.RequestState == "so far" {
			roots, err := json.Marshal(answer)
			return mcp.NewToolResultText(string(roots)), err
		}
		res := new(mcp.CallToolResult)
		res.RequestState = "so far"
		res.ResultType = mcp.ResultTypeInputRequired
		res.InputRequests = mcp.InputRequests{"r": mcp.NewRootsInputRequest()}
		return res, nil
	})
	tool("roots", func(ctx context.Context, _ mcp.CallToolRequest) (any, error) {
		res, err := s.RequestRoots(ctx, mcp.ListRootsRequest{})
		if err != nil {
			return nil, err
		}
		return res.Roots[0].URI, nil
	})
	tool("log", func(ctx context.Context, _ mcp.CallToolRequest) (any, error) {
		return "", s.SendNotificationToClient(ctx, "notifications/message", map[string]any{"level": "warning", "logger": "l", "data": "careful"})
	})
	tool("progress", func(ctx context.Context, req mcp.CallToolRequest) (any, error) {
		err := s.SendNotificationToClient(ctx, "notifications/progress",
			map[string]any{"progressToken": req.Params.Meta.ProgressToken, "progress": 1, "total": 2, "message": "half"})
		// This library may send the answer first, so it waits for a sign that the
		// progress has arrived.
		for ctx.Err() == nil {
			if _, err := os.Stat(req.GetString("until", "")); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		return "", err
	})
	tool("grow", func(ctx context.Context, _ mcp.CallToolRequest) (any, error) {
		return "", s.SendNotificationToClient(ctx, "notifications/tools/list_changed", nil)
	})
	if err := server.ServeStdio(s); err != nil {
		os.Exit(1)
	}
}

// serveWeather is the server of the examples.
func serveWeather() {
	s := server.NewMCPServer("weather", "1")
	s.AddTool(mcp.NewTool("forecast", mcp.WithDescription("Tells tomorrow's weather."), mcp.WithString("city", mcp.Required())),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			city := req.GetString("city", "")
			if city == "" {
				return mcp.NewToolResultError("which city?"), nil
			}
			return mcp.NewToolResultText("Rain in " + city + "."), nil
		})
	if err := server.ServeStdio(s); err != nil {
		os.Exit(1)
	}
}
