//go:build linux

package interop_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// What a server keeps is there at the next call, and for nobody else.
func checkState(b *bench) {
	var closed []mcppool.SessionClosedInfo
	var mu sync.Mutex
	p := b.pool(mcppool.Options{Trace: &mcppool.Trace{SessionClosed: func(_ context.Context, i mcppool.SessionClosedInfo) {
		mu.Lock()
		defer mu.Unlock()
		closed = append(closed, i)
	}}})
	srv := b.server()
	first := b.leave(p, srv, "A", "aleph")
	require.True(b, first.Fresh)
	got, again := b.ask(p, srv, "A", b.get("aleph"))
	require.Equal(b, first.SessionID, again.SessionID)
	require.False(b, again.Fresh)
	b.leave(p, srv, "B", "beth")
	other, served := b.ask(p, srv, "B", b.get("beth"))
	require.NotEqual(b, first.SessionID, served.SessionID)
	if b.put != nil {
		require.Contains(b, got, "aleph")
		require.Contains(b, other, "beth")
		require.NotContains(b, other, "aleph", "another scope's")
		res, err := p.CallTool(b.Context(), srv, b.get("x"))
		require.True(b, answered(err), "%v", err)
		if err == nil { // it may have nothing to show
			require.NotContains(b, text(res), "aleph", "a scope's, seen without one")
		}
		got, _ = b.ask(p, srv, "A", b.get("aleph"))
		require.Contains(b, got, "aleph")
		require.NotContains(b, got, "beth", "another scope's")
	}
	require.NoError(b, p.Close())
	mu.Lock()
	defer mu.Unlock()
	last := closed[len(closed)-1]
	b.found.ends = "end of input"
	if last.Took >= grace {
		b.found.ends = "SIGTERM"
	}
	if strings.Contains(last.Exit, "killed") {
		b.found.ends = "SIGKILL"
	}
}

// What it offers besides tools is there, and what it tells unasked arrives.
func checkOffers(b *bench) {
	heard := &said{}
	p := b.pool(mcppool.Options{Handlers: mcppool.Handlers{Notification: heard.add}})
	srv := b.server()
	tools, err := p.ListTools(b.Context(), srv, mcppool.Borrow{Scope: "A"})
	require.NoError(b, err)
	require.NotEmpty(b, tools)
	b.found.tools = len(tools)
	require.NoError(b, p.Do(b.Context(), srv, mcppool.Borrow{Scope: "A"}, func(ctx context.Context, s *mcppool.Session) error {
		capable := s.Info().Capabilities
		if capable.Resources != nil {
			list, err := s.ListResources(ctx, mcp.ListResourcesRequest{})
			require.True(b, answered(err), "%v", err) // some declare them and know no such method
			if err == nil && len(list.Resources) > 0 {
				first := list.Resources[0].URI
				res, err := s.ReadResource(ctx, mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: first}})
				require.NoError(b, err, "the resource %s", first)
				require.NotEmpty(b, res.Contents)
				b.found.said = append(b.found.said, "resources")
			}
		}
		if capable.Prompts != nil {
			_, err := s.ListPrompts(ctx, mcp.ListPromptsRequest{})
			require.NoError(b, err)
		}
		return nil
	}))
	b.leave(p, srv, "A", "aleph")
	if b.progress {
		checkProgress(b, p, srv)
		b.found.said = append(b.found.said, "progress")
	}
	for _, m := range heard.all() {
		m = strings.TrimPrefix(m, "notifications/")
		if strings.HasSuffix(m, "list_changed") && !slices.Contains(b.found.said, m) {
			b.found.said = append(b.found.said, m)
		}
	}
	slices.Sort(b.found.said)
}

// Progress comes while the call runs, and belongs to it.
func checkProgress(b *bench, p *mcppool.Pool, srv mcppool.Server) {
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	c := b.slow()
	c.Scope = "A"
	got := make(chan struct{}, 1000)
	c.OnProgress = func(mcp.ProgressNotification) {
		got <- struct{}{}
		if len(got) == 2 {
			cancel()
		}
	}
	_, err := p.CallTool(ctx, srv, c)
	require.ErrorIs(b, err, context.Canceled)
	require.GreaterOrEqual(b, len(got), 2)
}

// Each era that it speaks works, and the other fails in a way that says so.
func checkEras(b *bench) {
	p := b.pool(mcppool.Options{ConnectTimeout: 40 * time.Second})
	for _, era := range []mcppool.Protocol{mcppool.ProtocolLegacy, mcppool.ProtocolModern} {
		srv := b.server()
		srv.Protocol = era
		c := b.get("x")
		if b.put != nil {
			c = b.put("x")
		}
		c.Scope = string(era)
		_, err := p.CallTool(b.Context(), srv, c)
		if err == nil {
			b.found.eras = append(b.found.eras, b.session(p, c.Scope).Protocol)
			continue
		}
		var failed *mcppool.StartError
		require.ErrorAs(b, err, &failed)
		require.True(b, mcppool.SafeToRetry(err))
	}
	require.NotEmpty(b, b.found.eras)
}

// As many sessions as a busy host has work at once, each with its own state.
func checkMany(b *bench) {
	n := 30
	if b.many != 0 {
		n = b.many
	}
	if size(b) == "short" {
		n = min(n, 4)
	}
	p := b.pool(mcppool.Options{Limits: mcppool.Limits{MaxStarting: 3}, ConnectTimeout: 3 * time.Minute})
	srv := b.server()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- b.one(ctx, p, srv, i) }()
	}
	for range n {
		require.NoError(b, <-errs)
	}
	require.Equal(b, n, p.Stats().Kept)
	b.found.many = n
}

// one is one of many: it leaves its word, and finds that and no other.
func (b *bench) one(ctx context.Context, p *mcppool.Pool, srv mcppool.Server, i int) error {
	scope, word := fmt.Sprint("scope ", i), fmt.Sprintf("word-%d-", i)
	if b.put != nil {
		c := b.put(word)
		c.Scope = scope
		if _, err := p.CallTool(ctx, srv, c); err != nil {
			return err
		}
	}
	c := b.get(word)
	c.Scope = scope
	res, err := p.CallTool(ctx, srv, c)
	if err != nil {
		return err
	}
	if got := text(res); b.put != nil && (!strings.Contains(got, word) || strings.Count(got, "word-") > strings.Count(got, word)) {
		return fmt.Errorf("%s: want %s alone, got %.300s", scope, word, got)
	}
	return nil
}

// The same works through npx.
func checkNpx(b *bench) {
	b.throughNpx()
	p, srv := b.pool(mcppool.Options{}), b.server()
	first := b.leave(p, srv, "A", "aleph")
	got, again := b.ask(p, srv, "A", b.get("aleph"))
	require.Equal(b, first.SessionID, again.SessionID)
	if b.put != nil {
		require.Contains(b, got, "aleph")
	}
	require.Greater(b, len(tree(b, b.session(p, "A").PID)), 1, "npx starts the server, rather than being it")
}

// throughNpx starts the server with npx from now on.
func (b *bench) throughNpx() {
	b.Helper()
	if b.npm == "" || strings.Contains(b.bin, "/") {
		b.Skip("npx doesn't start it")
	}
	b.npx = true
}
