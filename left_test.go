package mcppool_test

import (
	"context"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/proc"
)

// immortal is a client whose process can't be ended.
type immortal struct{ *fake }

func (c immortal) Close() error {
	_ = c.fake.Close()
	return &proc.LeftError{Pids: []int{7}, Err: syscall.EPERM}
}

func TestWhatCannotBeEndedIsNamedByCloseAndGivesItsPlaceBack(t *testing.T) {
	f := &fakes{}
	var mu sync.Mutex
	var told []error
	p, err := mcppool.New(&mcppool.Options{
		Limits: mcppool.Limits{MaxProcesses: 1},
		Dial: func(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
			c, err := f.dial(ctx, srv)
			return immortal{c.(*fake)}, err
		},
		Trace: &mcppool.Trace{SessionClosed: func(_ context.Context, i mcppool.SessionClosedInfo) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, i.Err)
		}},
	})
	require.NoError(t, err)
	srv := mcppool.Server{Name: "browser", Command: "b"}
	require.NoError(t, call(t.Context(), p, srv, "a"))
	require.NoError(t, call(t.Context(), p, srv, "b"), "the place of the first is free")
	for _, err := range []error{p.Close(), p.Close(), p.Shutdown(t.Context()), told[0]} {
		var left *mcppool.LeftError
		require.ErrorAs(t, err, &left)
		require.Equal(t, "browser", left.Server)
		require.Equal(t, []int{7}, left.PIDs)
		require.ErrorIs(t, err, syscall.EPERM)
		require.ErrorContains(t, err, "mcppool: browser left processes behind: 7: operation not permitted")
	}
}
