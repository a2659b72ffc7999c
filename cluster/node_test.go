package cluster_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/cluster"
	"github.com/mcppool/mcppool/cluster/memdir"
)

func TestScopeHasOneSessionWhicheverReplicaItsCallsReach(t *testing.T) {
	store, srv := memdir.New(), child(t)
	a, b, c := join(t, store, "a", nil), join(t, store, "b", nil), join(t, store, "c", nil)
	text, first := a.note(t, srv, "s", "1")
	require.Equal(t, "[1]", text)
	require.Equal(t, "a", first.Node)
	require.Zero(t, first.Hops)
	require.True(t, first.Fresh)
	for i, r := range []replica{b, c, a, b} {
		var served mcppool.Served
		text, served = r.note(t, srv, "s", "x")
		require.Equal(t, first.SessionID, served.SessionID)
		require.Equal(t, "a", served.Node)
		require.False(t, served.Fresh)
		if i != 2 {
			require.Equal(t, 1, served.Hops)
		}
	}
	require.Equal(t, "[1 x x x x]", text)
	_, other := b.note(t, srv, "other", "1")
	require.Equal(t, "b", other.Node, "a new scope runs where it is first called")
	owner, err := c.Owner(t.Context(), "other")
	require.NoError(t, err)
	require.Equal(t, "b", owner.Name)
	require.Len(t, c.Members(), 3)
}

func TestErrorsAndProgressAndQuestionsCrossReplicas(t *testing.T) {
	store, srv := memdir.New(), child(t)
	srv.Protocol = mcppool.ProtocolLegacy
	var asked []mcppool.Origin
	handlers := func(answer string) func(*cluster.Options, *mcppool.Options) {
		return func(_ *cluster.Options, o *mcppool.Options) {
			o.Handlers.Elicitation = func(_ context.Context, from mcppool.Origin, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
				if answer == "from b" {
					asked = append(asked, from)
				}
				res := &mcp.ElicitationResult{}
				res.Action, res.Content = mcp.ElicitationResponseActionAccept, map[string]any{"name": answer}
				return res, nil
			}
		}
	}
	a, b := join(t, store, "a", handlers("from a")), join(t, store, "b", handlers("from b"))
	a.note(t, srv, "s", "1")

	_, err := b.CallTool(t.Context(), srv, mcppool.Call{Tool: "fail", Scope: "s"})
	var rpc *mcppool.RPCError
	require.ErrorAs(t, err, &rpc)
	require.Contains(t, err.Error(), "no such thing")
	require.Contains(t, err.Error(), "replica a")
	require.False(t, mcppool.SafeToRetry(err))

	var progress []float64
	_, err = b.CallTool(t.Context(), srv, mcppool.Call{Tool: "progress", Scope: "s", OnProgress: func(p mcp.ProgressNotification) {
		progress = append(progress, p.Params.Progress)
	}})
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2, 3}, progress)

	res, err := b.CallTool(t.Context(), srv, mcppool.Call{Tool: "ask", Scope: "s"})
	require.NoError(t, err)
	require.Contains(t, textOf(res), "from b")
	require.Len(t, asked, 1)
	require.Equal(t, "s", asked[0].Scope)
	res, err = a.CallTool(t.Context(), srv, mcppool.Call{Tool: "ask", Scope: "s"})
	require.NoError(t, err)
	require.Contains(t, textOf(res), "from a")

	_, err = b.CallTool(t.Context(), srv, mcppool.Call{Tool: "note", Scope: "s", IfSession: "another"})
	require.ErrorIs(t, err, mcppool.ErrOtherSession)
	require.True(t, mcppool.SafeToRetry(err))
}

func TestCancelReachesTheToolOnAnotherReplica(t *testing.T) {
	store, srv := memdir.New(), child(t)
	a, b := join(t, store, "a", nil), join(t, store, "b", nil)
	a.note(t, srv, "s", "1")
	dir := t.TempDir()
	mark, cancelled := filepath.Join(dir, "mark"), filepath.Join(dir, "cancelled")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := b.CallTool(ctx, srv, mcppool.Call{Tool: "sleep", Scope: "s", Args: map[string]any{"ms": 60000, "mark": mark, "cancelled": cancelled}})
		done <- err
	}()
	eventually(t, "the tool runs", exists(mark))
	begun := time.Now()
	cancel()
	err := <-done
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(begun), time.Second)
	require.False(t, mcppool.SafeToRetry(err))
}

func exists(name string) func() bool {
	return func() bool { _, err := os.Stat(name); return err == nil }
}

func TestCloseServerClosesOnEveryReplicaBeforeItReturns(t *testing.T) {
	store, srv := memdir.New(), child(t)
	a, b, c := join(t, store, "a", nil), join(t, store, "b", nil), join(t, store, "c", nil)
	a.note(t, srv, "s", "1")
	b.note(t, srv, "s2", "1")
	begun := time.Now()
	require.NoError(t, c.CloseServerEverywhere(t.Context(), srv))
	require.Less(t, time.Since(begun), ttl)
	require.Zero(t, a.pool.Stats().Kept)
	require.Zero(t, b.pool.Stats().Kept)
	text, served := c.note(t, srv, "s", "2")
	require.Equal(t, "[2]", text)
	require.True(t, served.Fresh)
	require.NoError(t, a.CloseScopeEverywhere(t.Context(), "s"))
	require.Zero(t, a.pool.Stats().Kept)
	text, _ = b.note(t, srv, "s", "3")
	require.Equal(t, "[3]", text)
}

func TestCloseServerEndsACallOnAnotherReplica(t *testing.T) {
	store, srv := memdir.New(), child(t)
	a, b := join(t, store, "a", nil), join(t, store, "b", nil)
	mark := filepath.Join(t.TempDir(), "mark")
	done := make(chan error)
	go func() {
		_, err := a.CallTool(context.Background(), srv, mcppool.Call{Tool: "sleep", Scope: "s", Args: map[string]any{"ms": 60000, "mark": mark}})
		done <- err
	}()
	eventually(t, "the tool runs", exists(mark))
	b.CloseServer(srv)
	require.ErrorIs(t, <-done, mcppool.ErrServerClosed)
}

func TestDrainGivesScopesToOthersAndLosesNoCall(t *testing.T) {
	store, srv := memdir.New(), child(t)
	a, b := join(t, store, "a", nil), join(t, store, "b", nil)
	a.note(t, srv, "idle", "1")
	a.note(t, srv, "busy", "1")
	mark := filepath.Join(t.TempDir(), "mark")
	done := make(chan error)
	go func() {
		_, err := b.CallTool(context.Background(), srv, mcppool.Call{Tool: "sleep", Scope: "busy", Args: map[string]any{"ms": 300, "mark": mark}})
		done <- err
	}()
	eventually(t, "the tool runs", exists(mark))
	require.NoError(t, a.Drain(t.Context()))
	require.NoError(t, <-done)
	for _, scope := range []string{"idle", "busy", "new"} {
		text, served := a.note(t, srv, scope, "2")
		require.Equal(t, "[2]", text)
		require.Equal(t, "b", served.Node)
		require.True(t, served.Fresh)
	}
	require.Zero(t, a.pool.Stats().Kept)
}

func TestClosedReplicaIsTakenOverAtOnce(t *testing.T) {
	store, srv := memdir.New(), child(t)
	a, b := join(t, store, "a", nil), join(t, store, "b", nil)
	a.note(t, srv, "s", "1")
	b.note(t, srv, "s", "2")
	require.NoError(t, a.Close())
	begun := time.Now()
	text, served := b.note(t, srv, "s", "3")
	require.Equal(t, "[3]", text)
	require.Equal(t, "b", served.Node)
	require.Less(t, time.Since(begun), ttl/2)
	_, err := a.CallTool(t.Context(), srv, mcppool.Call{Tool: "note", Scope: "s"})
	require.ErrorIs(t, err, cluster.ErrClosed)
}

func TestRouterRunsNothing(t *testing.T) {
	store, srv := memdir.New(), child(t)
	r := join(t, store, "router", func(o *cluster.Options, _ *mcppool.Options) { o.RoutesOnly = true })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := r.CallTool(ctx, srv, mcppool.Call{Tool: "note", Scope: "s"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.True(t, mcppool.SafeToRetry(err))
	host := join(t, store, "host", nil)
	for _, scope := range []string{"s", "s", ""} {
		_, served := r.note(t, srv, scope, "1")
		require.Equal(t, "host", served.Node)
	}
	tools, err := r.ListTools(t.Context(), srv, mcppool.Borrow{})
	require.NoError(t, err)
	require.Len(t, tools, 6)
	local, err := host.ListTools(t.Context(), srv, mcppool.Borrow{})
	require.NoError(t, err)
	require.ElementsMatch(t, local, tools)
	require.Zero(t, r.pool.Stats().Connects)
}

func TestExclusiveServerHasOneProcessInTheCluster(t *testing.T) {
	store, srv := memdir.New(), child(t)
	srv.Policy.Mode = mcppool.Exclusive
	a, b := join(t, store, "a", nil), join(t, store, "b", nil)
	_, served := a.note(t, srv, "s1", "1")
	require.Equal(t, "a", served.Node)
	_, served = b.note(t, srv, "s2", "1")
	require.Equal(t, "a", served.Node)
	require.Zero(t, b.pool.Stats().Connects)
	require.NoError(t, b.CloseScopeEverywhere(t.Context(), "s2"))
	eventually(t, "its session is closed", func() bool { return a.pool.Stats().Kept == 0 })
}

func TestIdleScopeIsGivenBack(t *testing.T) {
	store, srv := memdir.New(), child(t)
	srv.Policy.IdleTimeout = 50 * time.Millisecond
	a, b := join(t, store, "a", nil), join(t, store, "b", nil)
	a.note(t, srv, "s", "1")
	eventually(t, "nobody owns it", func() bool {
		o, err := b.Owner(t.Context(), "s")
		return err == nil && o.Incarnation == ""
	})
	_, served := b.note(t, srv, "s", "2")
	require.Equal(t, "b", served.Node)
}

func TestJoinRefusesOptionsWithoutMeaning(t *testing.T) {
	pool, err := mcppool.New(nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, pool.Close()) }()
	for field, o := range map[string]*cluster.Options{
		"Secret": nil, "Listen": {Secret: secret}, "TTL": {Secret: secret, Listen: ":0", TTL: -1},
		"Renew": {Secret: secret, Listen: ":0", Renew: time.Hour}, "Margin": {Secret: secret, Listen: ":0", Margin: -1},
	} {
		_, err := cluster.Join(t.Context(), pool, memdir.New().Open(), o)
		var config *mcppool.ConfigError
		require.True(t, errors.As(err, &config), field)
		require.Equal(t, "cluster.Options."+field, config.Field)
	}
}
