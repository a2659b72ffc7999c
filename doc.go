// Package mcppool keeps stdio MCP servers alive between tool calls: one session
// per (server, conversation), borrowed for a call under the caller's deadline.
//
// A [Pool] is made once. [Pool.CallTool] calls a tool of a [Server] in the session
// of the call's scope, which names a conversation; it is connected by the first
// call and kept for the next ones. A call without a scope has a session of its own,
// which ends with it. The pool closes what has been idle for long, what is over
// its caps, and at [Pool.Close] everything.
//
//	pool, err := mcppool.New(nil)
//	...
//	res, err := pool.CallTool(ctx, server, mcppool.Call{
//		Tool:  "query",
//		Args:  map[string]any{"sql": "select 1"},
//		Scope: mcppool.Scope("project-1", "thread-7"),
//	})
//
// # Deadlines
//
// The caller's ctx spans everything: waiting at a limit, for the connect, for the
// session's turn, and for the answer. It never bounds the life of a process. What a
// call that was given up does to its session is [Options.AfterAbandon].
//
// # Errors
//
// The caller's own ctx error comes through errors.Is. [ErrClosed],
// [ErrServerClosed], [ErrSessionLost] and [ErrBusy] are the pool's conditions;
// [*SessionLostError], [*StartError], [*BusyError], [*RPCError] and [*ConfigError] say
// more. A tool that failed is no error but a result with IsError. [SafeToRetry]
// says whether nothing was sent. No error holds a secret of the server's
// configuration.
//
// # Concurrency
//
// All methods of a Pool may be called from any goroutine, and from the pool's own
// callbacks where nothing else is said. Calls of one scope of one server go out one
// at a time, in order of arrival; others at the same time.
package mcppool
