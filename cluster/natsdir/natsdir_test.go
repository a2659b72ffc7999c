package natsdir_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool/cluster"
	"github.com/mcppool/mcppool/cluster/directorytest"
	"github.com/mcppool/mcppool/cluster/natsdir"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The server's clock and log of its process, which it never ends.
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server/ats.init.0.func1"))
}

func TestDirectoryKeepsTheContract(t *testing.T) {
	s := startServer(t, nil)
	var buckets atomic.Int32
	directorytest.Run(t, func(t *testing.T) func() cluster.Directory {
		t.Helper()
		opts := &natsdir.Options{Bucket: fmt.Sprint("contract", buckets.Add(1))}
		return func() cluster.Directory { return open(t, s.ClientURL(), opts) }
	})
}

// open opens a directory, which the test is to close.
func open(t *testing.T, url string, opts *natsdir.Options) *natsdir.Directory {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	d, err := natsdir.Open(ctx, url, opts)
	require.NoError(t, err)
	return d
}

// opened is open with the test's end as the directory's.
func opened(t *testing.T, url string, opts *natsdir.Options) *natsdir.Directory {
	t.Helper()
	d := open(t, url, opts)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// startServer starts a server in this process, on a port of its own, with a store of its
// own, unless opts say otherwise.
func startServer(t *testing.T, opts *server.Options) *server.Server {
	t.Helper()
	if opts == nil {
		opts = &server.Options{JetStream: true}
	}
	opts.Host, opts.NoSigs, opts.NoLog = "127.0.0.1", true, true
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	if opts.JetStream && opts.StoreDir == "" {
		opts.StoreDir = t.TempDir()
	}
	s, err := server.NewServer(opts)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { stop(s) })
	require.True(t, s.ReadyForConnections(20*time.Second))
	return s
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// conn is a plain connection to a server.
func conn(t *testing.T, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}
