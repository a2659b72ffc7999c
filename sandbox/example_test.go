package sandbox_test

import (
	"fmt"
	"log"
	"os/exec"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/sandbox"
)

// Servers that have rules of their own, by their names.
func ExampleBubblewrap() {
	boxes := map[string]sandbox.Command{
		"files":  sandbox.Bubblewrap(sandbox.Rules{Write: []string{"/srv/documents"}}),
		"search": sandbox.Bubblewrap(sandbox.Rules{Network: true}),
	}
	closed := sandbox.Bubblewrap(sandbox.Rules{})
	pool, err := mcppool.New(&mcppool.Options{
		Command: func(from mcppool.Origin, srv mcppool.Server, cmd *exec.Cmd) error {
			if box, ok := boxes[srv.Name]; ok {
				return box(from, srv, cmd)
			}
			return closed(from, srv, cmd)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pool.Close())
	// Output: <nil>
}
