package cluster_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/cluster"
	"github.com/mcppool/mcppool/cluster/memdir"
)

// Two replicas, here in one process: the second one's call runs in the first one's session.
func Example() {
	store := memdir.New() // a cluster of several machines has natsdir
	secret := []byte("16 bytes at least, the same everywhere")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	start := func(name string) (*cluster.Node, func()) {
		pool, err := mcppool.New(&mcppool.Options{Dial: dialCounter})
		if err != nil {
			log.Fatal(err)
		}
		dir := store.Open()
		node, err := cluster.Join(ctx, pool, dir, &cluster.Options{
			Name: name, Secret: secret, Listen: "127.0.0.1:0", TTL: 200 * time.Millisecond,
		})
		if err != nil {
			log.Fatal(err)
		}
		return node, func() { _, _, _ = node.Close(), pool.Close(), dir.Close() }
	}
	a, closeA := start("a")
	defer closeA()
	b, closeB := start("b")
	defer closeB()

	srv := mcppool.Server{Command: "counter"}
	for _, node := range []*cluster.Node{a, b} {
		var served mcppool.Served
		res, err := node.CallTool(ctx, srv, mcppool.Call{Tool: "count", Scope: mcppool.Scope("project", "chat"), Served: &served})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(textOf(res), "on", served.Node)
	}
	// Output:
	// 1 on a
	// 2 on a
}
