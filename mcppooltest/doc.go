// Package mcppooltest is for the tests of programs that use mcppool: servers that live in
// memory and do what a test says, a real server with faults to choose from, and a check
// that nothing is left.
//
// # Servers in memory
//
// [New] makes a pool that your program gets in place of its own. No process is started,
// whatever the configuration of your servers says; what they answer is in [Fakes]:
//
//	fakes := &mcppooltest.Fakes{Tools: mcppooltest.Tools{
//		"weather": mcppooltest.Text("sunny"),
//		"traffic": mcppooltest.Delay(time.Minute, mcppooltest.Text("none")),
//		"news":    mcppooltest.Die(),
//		"search": func(ctx context.Context, call *mcppooltest.Call) (*mcp.CallToolResult, error) {
//			call.Progress(1, 2, "half of it")
//			return mcp.NewToolResultText("nothing on " + call.GetString("query", "")), nil
//		},
//	}}
//	pool := mcppooltest.New(t, fakes, nil)
//
// All of it works in a bubble of [testing/synctest], where a minute takes no time and is
// a minute exactly. [Fakes.Calls] and [Fakes.Log] say what came to the servers.
//
// # A real server
//
// [Server] is your test binary, started as an MCP server over stdio, for what depends on
// processes. Without modes it behaves well; with some it floods its stderr, dies during a
// call, ignores signals, or leaves a daemon:
//
//	func TestMain(m *testing.M) { mcppooltest.Main(m) }
//
//	func TestServerThatDies(t *testing.T) {
//		mcppooltest.NoLeaks(t)
//		srv := mcppooltest.Server(t, "die=call")
//		...
//
// [NoLeaks] fails the test if a process, a goroutine, a descriptor or a temporary folder
// is left at its end.
package mcppooltest
