package mcpservers_test

import (
	"fmt"

	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

func Example() {
	text := `{
  // as Cursor has it
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "files-mcp", "${workspaceFolder}/src"]},
    "wiki": {"url": "https://wiki.example/mcp", "headers": {"Authorization": "Bearer ${env:WIKI_TOKEN}"}},
    "old": {"command": "old-mcp", "disabled": true}
  }
}`
	file, err := mcpservers.Parse("mcp.json", []byte(text), &mcpservers.Options{
		WorkspaceFolder: "/home/me/project",
		Getenv:          func(string) (string, bool) { return "", false },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range file.Entries {
		switch {
		case e.Err != nil:
			fmt.Println(e.Err)
		case e.Disabled:
			fmt.Println(e.Name, "is off")
		default:
			fmt.Println(e.Name, "runs", e.Server.Command, e.Server.Args)
		}
	}
	// Output:
	// files runs npx [-y files-mcp /home/me/project/src]
	// mcpservers: mcp.json:5: server "wiki": headers.Authorization: variable "WIKI_TOKEN" isn't set: set it, or write ${WIKI_TOKEN:-default}
	// old is off
}
