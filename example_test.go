package mcppool_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcppool/mcppool"
)

func ExampleScope() {
	fmt.Println(mcppool.Scope("project-1", "thread-7"))
	fmt.Printf("%q\n", mcppool.Scope("project-1", ""))
	// Output:
	// 9:project-1:thread-7
	// ""
}

func ExampleParseCommand() {
	srv, err := mcppool.ParseCommand(`npx -y @playwright/mcp --user-agent "my browser"`)
	fmt.Println(srv.Command, len(srv.Args), srv.Args[3], err)
	_, err = mcppool.ParseCommand(`npx "oops`)
	fmt.Println(err)
	// Output:
	// npx 4 my browser <nil>
	// mcppool: command line has a double quote that isn't closed
}

func ExamplePool_CallTool_errors() {
	pool, err := mcppool.New(nil)
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	_, err = pool.CallTool(ctx, mcppool.Server{Command: "no-such-server"}, mcppool.Call{Tool: "query"})
	var start *mcppool.StartError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Println("too slow")
	case errors.As(err, &start):
		fmt.Println("did not start; safe to retry:", mcppool.SafeToRetry(err))
	}
	// Output: did not start; safe to retry: true
}

func ExamplePool_Do() {
	pool, err := mcppool.New(&mcppool.Options{Dial: (&fakes{}).dial}) // in your program: nil
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	database := mcppool.Server{Command: "database-server"}
	err = pool.Do(context.Background(), database, mcppool.Borrow{Scope: mcppool.Scope("p1", "t1")}, func(ctx context.Context, s *mcppool.Session) error {
		for _, tool := range []string{"begin", "insert", "commit"} { // nobody else's call comes in between
			if _, err := s.CallTool(ctx, mcppool.Call{Tool: tool}); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExamplePool_SetLimits() {
	pool, err := mcppool.New(&mcppool.Options{
		Limits: mcppool.Limits{MaxProcesses: 20, MaxPerScope: 4, MaxWaiting: 100, MaxWait: 30 * time.Second},
	})
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	pool.SetLimits(mcppool.Limits{MaxProcesses: 40}) // the machine got bigger
	fmt.Println(pool.Stats().Waiting)
	// Output: 0
}
