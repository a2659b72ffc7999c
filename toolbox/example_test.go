package toolbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

func Example() {
	pool, err := mcppool.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	catalog, err := toolbox.WatchConfig(pool, nil, "mcp.json")
	if err != nil {
		log.Fatal(err)
	}
	defer catalog.Close()
	box, err := toolbox.New(pool, catalog, nil)
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	tools, err := box.Tools(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_ = tools.OpenAI() // goes to the model

	out := box.Dispatch(ctx, "mcp__github__search_issues", json.RawMessage(`{"q":"leak"}`),
		toolbox.Conversation{Project: "p1", Thread: "t7"})
	fmt.Println(out.Text) // goes back to the model
}

func ExampleToolName() {
	fmt.Println(toolbox.ToolName("github", "search_issues"))
	fmt.Println(toolbox.ToolName("My Server", "get.issue"))
	// Output:
	// mcp__github__search_issues
	// mcp__My_Server_c2d9a82f__get_issue_e799ff3e
}
