package memdir_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool/cluster"
	"github.com/mcppool/mcppool/cluster/directorytest"
	"github.com/mcppool/mcppool/cluster/memdir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	directorytest.Run(t, func(*testing.T) func() cluster.Directory { return memdir.New().Open })
}

func TestWipeInterruptsWatchesAndForgetsRecords(t *testing.T) {
	s := memdir.New()
	d := s.Open()
	defer func() { require.NoError(t, d.Close()) }()
	ctx := context.Background()
	rev, err := d.Create(ctx, cluster.Owners, "k", nil)
	require.NoError(t, err)
	synced, ended := make(chan struct{}), make(chan error)
	go func() {
		ended <- d.Watch(ctx, cluster.Owners, func(ev cluster.Event) {
			if ev.Kind == cluster.Synced {
				close(synced)
			}
		})
	}()
	<-synced
	s.Wipe()
	require.ErrorIs(t, <-ended, memdir.ErrInterrupted)
	again, err := d.Create(ctx, cluster.Owners, "k", nil)
	require.NoError(t, err)
	require.Equal(t, rev, again, "its revisions begin anew, as those of a store that was lost")
}

func TestWatchThatFallsFarBehindIsInterrupted(t *testing.T) {
	d := memdir.New().Open()
	defer func() { require.NoError(t, d.Close()) }()
	ctx := context.Background()
	told, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- d.Watch(ctx, cluster.Owners, func(cluster.Event) {
			close(told)
			<-goOn
		})
	}()
	<-told
	for i := range 5000 {
		rev, err := d.Put(ctx, cluster.Owners, fmt.Sprint(i), nil)
		require.NoError(t, err)
		require.NoError(t, d.Delete(ctx, cluster.Owners, fmt.Sprint(i), rev))
	}
	close(goOn)
	require.ErrorIs(t, <-ended, memdir.ErrInterrupted)
}
