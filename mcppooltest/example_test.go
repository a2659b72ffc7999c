package mcppooltest_test

import (
	"context"
	"fmt"
	"io"
	"os/exec"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppooltest"
)

func ExampleNew() {
	t, end := exampleT() // in a test: its t
	defer end()

	fakes := &mcppooltest.Fakes{Tools: mcppooltest.Tools{
		"weather": mcppooltest.InOrder(mcppooltest.Fail("try again"), mcppooltest.Text("sunny")),
		"forecast": func(_ context.Context, call *mcppooltest.Call) (*mcp.CallToolResult, error) {
			call.Progress(1, 2, "asked the satellite")
			return mcp.NewToolResultText("rain over " + call.GetString("city", "")), nil
		},
	}}
	pool := mcppooltest.New(t, fakes, nil)

	srv := mcppool.Server{Name: "weather", Command: "weather-server"} // isn't started
	for _, call := range []mcppool.Call{
		{Tool: "weather"},
		{Tool: "weather"},
		{Tool: "forecast", Args: map[string]any{"city": "Ulm"}, OnProgress: func(n mcp.ProgressNotification) { fmt.Println(n.Params.Message) }},
	} {
		call.Scope = "chat-7"
		res, err := pool.CallTool(context.Background(), srv, call)
		fmt.Println(res.Content[0].(mcp.TextContent).Text, res.IsError, err)
	}
	fmt.Println(fakes.Calls()[2])
	// Output:
	// try again true <nil>
	// sunny false <nil>
	// asked the satellite
	// rain over Ulm false <nil>
	// weather#1: forecast {"city":"Ulm"}
}

func ExampleConn_Elicit() {
	t, end := exampleT() // in a test: its t
	defer end()

	fakes := &mcppooltest.Fakes{Tools: mcppooltest.Tools{
		"delete": func(ctx context.Context, call *mcppooltest.Call) (*mcp.CallToolResult, error) {
			answer, err := call.Conn.Elicit(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: "Really?"}})
			if err != nil {
				return nil, err
			}
			return mcp.NewToolResultText("you said: " + string(answer.Action)), nil
		},
	}}
	pool := mcppooltest.New(t, fakes, &mcppool.Options{Handlers: mcppool.Handlers{
		Elicitation: func(_ context.Context, from mcppool.Origin, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
			fmt.Printf("%s asks %s: %s\n", from.Server, from.Scope, req.Params.Message)
			return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionDecline}}, nil
		},
	}})
	res, err := pool.CallTool(context.Background(), mcppool.Server{Name: "files", Command: "files-server"}, mcppool.Call{Tool: "delete", Scope: "chat-7"})
	fmt.Println(res.Content[0].(mcp.TextContent).Text, err)
	// Output:
	// files asks chat-7: Really?
	// you said: decline <nil>
}

// The TestMain of this package calls [mcppooltest.Main].
func ExampleServer() {
	t, end := exampleT() // in a test: its t
	defer end()
	mcppooltest.NoLeaks(t)

	pool, err := mcppool.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })

	note := mcppool.Call{Tool: "note", Args: map[string]any{"text": "milk"}, Scope: "chat-7"}
	res, err := pool.CallTool(context.Background(), mcppooltest.Server(t), note)
	fmt.Println(res.Content[0].(mcp.TextContent).Text, err)

	_, err = pool.CallTool(context.Background(), mcppooltest.Server(t, "die=start"), note)
	fmt.Println("safe to retry:", mcppool.SafeToRetry(err))
	// Output:
	// milk <nil>
	// safe to retry: true
}

func ExampleEnv() {
	t, end := exampleT() // in a test: its t
	defer end()

	srv := mcppooltest.Server(t) // for its Command
	cmd := exec.CommandContext(context.Background(), srv.Command)
	for name, value := range mcppooltest.Env("crlf") {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	in, _ := cmd.StdinPipe()
	go func() {
		defer in.Close()
		io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	}()
	out, err := cmd.Output()
	fmt.Printf("%q %v\n", out, err)
	// Output: "{\"id\":1,\"jsonrpc\":\"2.0\",\"result\":{}}\r\n" <nil>
}

func ExampleNoLeaks() {
	t, end := exampleT() // in a test: its t
	defer end()

	mcppooltest.NoLeaks(t)                                                        // first
	pool, err := mcppool.New(&mcppool.Options{Dial: (&mcppooltest.Fakes{}).Dial}) // then what must be gone
	t.Cleanup(func() { pool.Close() })
	fmt.Println(err)
	// Output: <nil>
}
