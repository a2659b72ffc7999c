package toolbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

// weather is the test binary, which is this server when the variable is set.
var weather = mcppool.Server{Command: os.Args[0], Env: map[string]string{"MCPPOOL_TOOLBOX_SERVER": "weather"}}

func Example() {
	pool, err := mcppool.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	catalog, err := toolbox.NewStaticCatalog(toolbox.Entry{ID: "weather", Server: weather})
	if err != nil {
		log.Fatal(err)
	}
	box, err := toolbox.New(pool, catalog, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()

	// For the model: tools.OpenAI(), tools.Anthropic() or tools.Gemini().
	ctx := context.Background()
	tools, err := box.Tools(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range tools.Tools {
		fmt.Printf("%s: %s\n", t.Name, t.Spec.Description)
	}
	for _, failed := range tools.Failed {
		log.Print(failed)
	}

	// What the model called. Whatever comes of it is a text for the model.
	conv := toolbox.Conversation{Project: "p1", Thread: "t7"}
	for _, call := range []toolbox.ToolCall{
		{Name: "mcp__weather__forecast", Args: json.RawMessage(`{"city": "Oslo"}`)},
		{Name: "mcp__weather__forecast", Args: json.RawMessage(`{"city": `)},
		{Name: "mcp__weather__forecast"},
		{Name: "mcp__wheather__forecast", Args: json.RawMessage(`{"city": "Oslo"}`)},
	} {
		fmt.Println(box.Dispatch(ctx, call.Name, call.Args, conv).Text)
	}
	// Output:
	// mcp__weather__forecast: Tells tomorrow's weather.
	// Rain in Oslo.
	// Error: MCP tool 'forecast' got invalid arguments: invalid JSON at byte 9: unexpected end
	// Error: which city?
	// Error: unknown MCP server 'wheather'
}

func ExampleBox_DispatchAll() {
	pool, err := mcppool.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	catalog, err := toolbox.NewStaticCatalog(
		toolbox.Entry{ID: "weather", Server: weather},
		toolbox.Entry{ID: "attic", Disabled: true},
	)
	if err != nil {
		log.Fatal(err)
	}
	box, err := toolbox.New(pool, catalog, nil)
	if err != nil {
		log.Fatal(err)
	}

	turn := []toolbox.ToolCall{
		{ID: "call_1", Name: "mcp__weather__forecast", Args: json.RawMessage(`{"city": "Oslo"}`)},
		{ID: "call_2", Name: "mcp__attic__search", Args: json.RawMessage(`{}`)},
	}
	for i, out := range box.DispatchAll(context.Background(), turn, toolbox.Conversation{Thread: "t7"}) {
		fmt.Println(turn[i].ID, out.Text)
		if errors.Is(out.Err, toolbox.ErrServerDisabled) {
			fmt.Println("(tell the user where to enable it)")
		}
	}
	// Output:
	// call_1 Rain in Oslo.
	// call_2 Error: MCP server 'attic' is disabled
	// (tell the user where to enable it)
}

func ExampleReadResult() {
	content := toolbox.ReadResult(&mcp.CallToolResult{Content: []mcp.Content{
		mcp.NewTextContent("A red dot:"),
		mcp.NewImageContent("iVBORw0KGgo=", "image/png"),
		mcp.NewTextContent("It is small."),
	}}, toolbox.Limits{MaxTextBytes: 49})
	fmt.Println(content.Text)
	fmt.Println(content.Images[0].MIMEType, len(content.Images[0].Data))
	// Output:
	// A red dot:
	// [image: image/png, 8 bytes]
	// It is smal
	// [2 bytes of text left out]
	// image/png 8
}

func ExampleToolName() {
	fmt.Println(toolbox.ToolName("github", "search_issues"))
	fmt.Println(toolbox.ToolName("My Server", "get.issue"))
	// Output:
	// mcp__github__search_issues
	// mcp__My_Server_c2d9a82f__get_issue_e799ff3e
}
