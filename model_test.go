package mcppool_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool"
)

// TestModelAllowsWhateverHappens runs random schedules against a pool in memory, and
// compares what happens with what may. MCPPOOL_MODEL is the number of schedules;
// rapid's own flags work besides.
func TestModelAllowsWhateverHappens(t *testing.T) {
	modelChecks(t, "500")
	tries, last := 1, ""
	defer func() { t.Log(last) }()
	rapid.Check(t, func(rt *rapid.T) {
		plan := drawPlan.Draw(rt, "plan")
		for range tries {
			if problem, trace := plan.run(t); problem != "" {
				tries = 20 // a race is not lost each time
				last = trace
				rt.Fatal(problem)
			}
		}
	})
}

// modelChecks sets how many schedules are tried.
func modelChecks(t *testing.T, n string) {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value
	old := checks.String()
	switch v := os.Getenv("MCPPOOL_MODEL"); {
	case v != "":
		n = v
	case old != "100": // it was asked for
		return
	}
	require.NoError(t, checks.Set(n), "MCPPOOL_MODEL")
	t.Cleanup(func() { _ = checks.Set(old) })
}

// run runs the plan in a bubble of its own. What the bubble itself finds, that
// everything waits for ever, is a problem like others.
func (p *modelPlan) run(t *testing.T) (problem, trace string) {
	t.Helper()
	w := &modelWorld{plan: p, limits: p.Options.Limits, hadLimits: []mcppool.Limits{p.Options.Limits}}
	defer func() {
		if v := recover(); v != nil && problem == "" {
			problem = fmt.Sprintf("panic: %v", v)
		}
		trace = w.trace.String()
	}()
	synctest.Test(t, func(*testing.T) {
		defer func() {
			if v := recover(); v != nil {
				w.logf("panic: %v\n%s", v, debug.Stack())
				w.failf("a panic")
			}
			problem = w.problem
		}()
		w.run()
	})
	return problem, trace
}

// TestModelServesScopesInTurns lets callers of random scopes wait for one place, and
// compares the order in which they get it with the rule: first come, first served
// within a scope, and in turns between scopes.
func TestModelServesScopesInTurns(t *testing.T) {
	modelChecks(t, "50")
	rapid.Check(t, func(rt *rapid.T) {
		scopes := rapid.SliceOfN(oneOf("a", "b", "c", ""), 1, 20).Draw(rt, "scopes")
		var got []string
		synctest.Test(t, func(t *testing.T) {
			f := &fakes{call: func(_ context.Context, _ *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				got = append(got, req.Params.Name)
				time.Sleep(time.Second)
				return answer, nil
			}}
			p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
			var ends []<-chan error
			for i, scope := range append([]string{"first"}, scopes...) {
				srv := mcppool.Server{Command: fmt.Sprint(i)} // so that none waits for another's session
				ends = append(ends, after(func() error {
					_, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: fmt.Sprint(i), Scope: scope})
					return err
				}))
				synctest.Wait()
			}
			for _, end := range ends {
				require.NoError(t, <-end)
			}
		})
		want := []string{"0"}
		queues := map[string][]string{}
		var turns []string
		for i, scope := range scopes {
			if len(queues[scope]) == 0 {
				turns = append(turns, scope)
			}
			queues[scope] = append(queues[scope], fmt.Sprint(i+1))
		}
		for len(turns) > 0 {
			scope := turns[0]
			want = append(want, queues[scope][0])
			turns, queues[scope] = turns[1:], queues[scope][1:]
			if len(queues[scope]) > 0 {
				turns = append(turns, scope)
			}
		}
		require.Equal(rt, want, got)
	})
}
