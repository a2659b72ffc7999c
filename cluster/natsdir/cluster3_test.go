package natsdir_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/cluster"
	"github.com/mcppool/mcppool/cluster/directorytest"
	"github.com/mcppool/mcppool/cluster/natsdir"
)

// startThree starts a NATS cluster.
func startThree(t *testing.T) (servers map[string]*server.Server, urls string) {
	t.Helper()
	var routes []*url.URL
	var ports []int
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
		require.NoError(t, l.Close())
	}
	servers = make(map[string]*server.Server)
	var all []string
	for i, port := range ports {
		name := fmt.Sprint("n", i)
		servers[name] = startServer(t, &server.Options{
			ServerName: name, JetStream: true, Routes: routes,
			Cluster: server.ClusterOpts{Name: "three", Host: "127.0.0.1", Port: port, PoolSize: -1},
		})
		all = append(all, servers[name].ClientURL())
	}
	require.Eventually(t, func() bool {
		for _, s := range servers {
			if s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == 3 {
				return true
			}
		}
		return false
	}, 30*time.Second, 50*time.Millisecond)
	return servers, strings.Join(all, ",")
}

func TestDirectoryOfThreeNodesKeepsTheContractAndOutlivesItsLeader(t *testing.T) {
	servers, urls := startThree(t)
	var buckets atomic.Int32
	directorytest.Run(t, func(t *testing.T) func() cluster.Directory {
		t.Helper()
		opts := &natsdir.Options{Bucket: fmt.Sprint("contract", buckets.Add(1)), Replicas: 3}
		return func() cluster.Directory { return open(t, urls, opts) }
	})
	d := opened(t, urls, &natsdir.Options{Replicas: 3})
	require.Equal(t, 10*time.Second, d.MinTTL())
	revision, err := d.Create(t.Context(), cluster.Leases, "k", []byte("v"))
	require.NoError(t, err)

	js, err := jetstream.New(conn(t, urls))
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "KV_mcppool")
	require.NoError(t, err)
	begun := time.Now()
	stop(servers[stream.CachedInfo().Cluster.Leader])
	require.Eventually(t, func() bool {
		// A write may have been done though its answer was lost with the leader.
		next, err := d.Update(t.Context(), cluster.Leases, "k", []byte("w"), revision)
		if errors.Is(err, cluster.ErrConflict) {
			var rec cluster.Record
			rec, err = d.Get(t.Context(), cluster.Leases, "k")
			next = rec.Revision
		}
		return err == nil && next > revision
	}, 30*time.Second, 50*time.Millisecond)
	t.Logf("without the stream's leader for %v", time.Since(begun))
	rec, err := d.Get(context.WithoutCancel(t.Context()), cluster.Leases, "k")
	require.NoError(t, err)
	require.Equal(t, "w", string(rec.Value))
}
