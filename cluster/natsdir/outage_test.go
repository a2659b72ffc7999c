package natsdir_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/cluster"
	"github.com/mcppool/mcppool/cluster/natsdir"
)

// short is a timeout that keeps these tests so.
var short = &natsdir.Options{Timeout: 200 * time.Millisecond}

// again starts a server that was stopped, on its port, with a store.
func again(t *testing.T, s *server.Server, store string) {
	t.Helper()
	at, err := url.Parse(s.ClientURL())
	require.NoError(t, err)
	port, err := strconv.Atoi(at.Port())
	require.NoError(t, err)
	stop(s)
	startServer(t, &server.Options{JetStream: true, Port: port, StoreDir: store})
}

// watching tells when a watch of a bucket is in step, and how it ends.
func watching(t *testing.T, d cluster.Directory, b cluster.Bucket) (synced chan struct{}, ended chan error) {
	t.Helper()
	synced, ended = make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- d.Watch(t.Context(), b, func(ev cluster.Event) {
			if ev.Kind == cluster.Synced {
				close(synced)
			}
		})
	}()
	return synced, ended
}

// soon returns what comes from c, or fails the test.
func soon[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(20 * time.Second):
		require.Fail(t, "never: "+what)
	}
	return v
}

func TestRecordsOutliveARestartAndWatchesEndWithIt(t *testing.T) {
	store := t.TempDir()
	s := startServer(t, &server.Options{JetStream: true, StoreDir: store})
	d := opened(t, s.ClientURL(), short)
	first, err := d.Create(t.Context(), cluster.Owners, "k", []byte("v"))
	require.NoError(t, err)
	synced, ended := watching(t, d, cluster.Owners)
	soon(t, "synced", synced)

	again(t, s, store)
	require.ErrorIs(t, soon(t, "the watch's end", ended), natsdir.ErrInterrupted)
	require.Eventually(t, func() bool {
		rec, err := d.Get(t.Context(), cluster.Owners, "k")
		return err == nil && rec.Revision == first
	}, 20*time.Second, 50*time.Millisecond)
	second, err := d.Update(t.Context(), cluster.Owners, "k", []byte("w"), first)
	require.NoError(t, err)
	require.Greater(t, second, first)
	synced, _ = watching(t, d, cluster.Owners)
	soon(t, "a new watch is in step", synced)
}

func TestRevisionsOfALostStoreAreNotThoseOfTheNextOne(t *testing.T) {
	s := startServer(t, nil)
	d := opened(t, s.ClientURL(), short)
	old, err := d.Create(t.Context(), cluster.Owners, "k", []byte("v"))
	require.NoError(t, err)
	before, err := d.Age(t.Context())
	require.NoError(t, err)

	again(t, s, t.TempDir())
	require.Eventually(t, func() bool {
		_, err := d.Get(t.Context(), cluster.Owners, "k")
		return errors.Is(err, cluster.ErrNotFound)
	}, 20*time.Second, 50*time.Millisecond, "the directory makes the store anew")
	age, err := d.Age(t.Context())
	require.NoError(t, err)
	require.Less(t, age, before+20*time.Second)
	_, err = d.Update(t.Context(), cluster.Owners, "k", []byte("w"), old)
	require.ErrorIs(t, err, cluster.ErrConflict)
	revision, err := d.Create(t.Context(), cluster.Owners, "k", []byte("x"))
	require.NoError(t, err)
	require.Greater(t, revision, old)
}

func TestWhatCouldNotBeSentIsNotSentLater(t *testing.T) {
	store := t.TempDir()
	s := startServer(t, &server.Options{JetStream: true, StoreDir: store})
	d := opened(t, s.ClientURL(), short)
	stop(s)
	begun := time.Now()
	_, err := d.Create(t.Context(), cluster.Owners, "k", []byte("v"))
	require.Error(t, err)
	require.NotErrorIs(t, err, cluster.ErrExists)
	require.Less(t, time.Since(begun), 3*time.Second)

	again(t, s, store)
	require.Eventually(t, func() bool {
		_, err := d.Create(t.Context(), cluster.Owners, "other", nil)
		return err == nil
	}, 20*time.Second, 50*time.Millisecond, "the connection is back")
	_, err = d.Get(t.Context(), cluster.Owners, "k")
	require.ErrorIs(t, err, cluster.ErrNotFound)
}

func TestFrozenConnectionCostsItsTimeoutsAndNoMore(t *testing.T) {
	s := startServer(t, nil)
	p := newProxy(t, s.Addr().String())
	d := opened(t, p.url(), short)
	revision, err := d.Create(t.Context(), cluster.Owners, "k", []byte("v"))
	require.NoError(t, err)
	synced, ended := watching(t, d, cluster.Owners)
	soon(t, "synced", synced)
	p.freeze(up, down)
	begun := time.Now()
	_, err = d.Get(t.Context(), cluster.Owners, "k")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = d.Update(t.Context(), cluster.Owners, "k", []byte("w"), revision)
	require.Error(t, err)
	require.NotErrorIs(t, err, cluster.ErrConflict, "nobody knows")
	require.Less(t, time.Since(begun), 5*time.Second)
	require.ErrorIs(t, soon(t, "the watch's end", ended), natsdir.ErrInterrupted)
	p.thaw()
}

func TestWriteWhoseAnswerWasLostIsKnownAgain(t *testing.T) {
	s := startServer(t, nil)
	p := newProxy(t, s.Addr().String())
	d := opened(t, p.url(), short)
	other := opened(t, s.ClientURL(), nil)
	revision, err := d.Create(t.Context(), cluster.Owners, "k", []byte("v"))
	require.NoError(t, err)

	p.freeze(down)
	type answer struct {
		revision uint64
		err      error
	}
	answers := make(chan answer, 1)
	go func() {
		revision, err := d.Update(t.Context(), cluster.Owners, "k", []byte("w"), revision)
		answers <- answer{revision, err}
	}()
	var there cluster.Record
	require.Eventually(t, func() bool {
		there, err = other.Get(t.Context(), cluster.Owners, "k")
		return err == nil && string(there.Value) == "w"
	}, 20*time.Second, time.Millisecond)
	time.AfterFunc(short.Timeout+short.Timeout/2, p.thaw) // the write's own answer comes too late
	got := soon(t, "the write's end", answers)
	require.NoError(t, got.err)
	require.Equal(t, there.Revision, got.revision)
}

// proxy is a TCP proxy that can be frozen, each way by itself: bytes wait, connections stay.
type proxy struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex // protects the fields below
	conns  []net.Conn
	frozen [2]chan struct{} // by direction; closed when it thaws
}

type direction int

const (
	up direction = iota // to the server
	down
)

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l}
	p.wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			p.wg.Go(func() { p.copy(up, out, in) })
			p.wg.Go(func() { p.copy(down, in, out) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.thaw()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) copy(way direction, to, from net.Conn) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		ice := p.frozen[way]
		p.mu.Unlock()
		if ice != nil {
			<-ice
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) freeze(ways ...direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, way := range ways {
		p.frozen[way] = make(chan struct{})
	}
}

func (p *proxy) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for way, ice := range p.frozen {
		if ice != nil {
			close(ice)
			p.frozen[way] = nil
		}
	}
}
