package cluster_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/cluster"
	"github.com/mcppool/mcppool/cluster/memdir"
	"github.com/mcppool/mcppool/toolbox"
)

var _ toolbox.Caller = (*cluster.Node)(nil)

// line is a directory behind a line that can be cut.
type line struct {
	cluster.Directory

	mu   sync.Mutex
	cut  context.Context // ends when the line is cut
	end  context.CancelFunc
	deaf int // so many of the next writes are done, and their answers lost
}

var errCut = errors.New("the line is cut")

func newLine(store *memdir.Store) *line {
	l := &line{Directory: aged{store.Open(), time.Hour}}
	l.mend()
	return l
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.end = context.WithCancel(context.Background())
}

func (l *line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// try is one operation over the line.
func try[V any](ctx context.Context, l *line, write bool, f func() (V, error)) (V, error) {
	var none V
	l.mu.Lock()
	cut := l.cut
	lost := write && l.deaf > 0
	if lost {
		l.deaf--
	}
	l.mu.Unlock()
	if cut.Err() != nil {
		<-ctx.Done() // nobody says that it is cut
		return none, ctx.Err()
	}
	v, err := f()
	if lost {
		return none, errCut
	}
	return v, err
}

func (l *line) Get(ctx context.Context, b cluster.Bucket, key string) (cluster.Record, error) {
	return try(ctx, l, false, func() (cluster.Record, error) { return l.Directory.Get(ctx, b, key) })
}

func (l *line) Create(ctx context.Context, b cluster.Bucket, key string, value []byte) (uint64, error) {
	return try(ctx, l, true, func() (uint64, error) { return l.Directory.Create(ctx, b, key, value) })
}

func (l *line) Update(ctx context.Context, b cluster.Bucket, key string, value []byte, rev uint64) (uint64, error) {
	return try(ctx, l, true, func() (uint64, error) { return l.Directory.Update(ctx, b, key, value, rev) })
}

func (l *line) Put(ctx context.Context, b cluster.Bucket, key string, value []byte) (uint64, error) {
	return try(ctx, l, true, func() (uint64, error) { return l.Directory.Put(ctx, b, key, value) })
}

func (l *line) Delete(ctx context.Context, b cluster.Bucket, key string, rev uint64) error {
	_, err := try(ctx, l, true, func() (int, error) { return 0, l.Directory.Delete(ctx, b, key, rev) })
	return err
}

func (l *line) Age(ctx context.Context) (time.Duration, error) {
	return try(ctx, l, false, func() (time.Duration, error) { return l.Directory.Age(ctx) })
}

func (l *line) Watch(ctx context.Context, b cluster.Bucket, f func(cluster.Event)) error {
	l.mu.Lock()
	cut := l.cut
	l.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(cut, func() { cancel(errCut) })()
	if cut.Err() != nil {
		<-ctx.Done()
		return errCut
	}
	return l.Directory.Watch(ctx, b, f)
}

func TestShortOutageOfTheDirectoryIsNotNoticed(t *testing.T) {
	store, srv := memdir.New(), child(t)
	l := newLine(store)
	a, b := joinDir(t, l, "a", nil), join(t, store, "b", nil)
	_, first := a.note(t, srv, "s", "1")
	b.note(t, srv, "s", "1")
	l.Cut()
	time.AfterFunc(ttl/3, l.mend)
	for end := time.Now().Add(ttl / 2); time.Now().Before(end); {
		_, served := b.note(t, srv, "s", "x")
		require.Equal(t, first.SessionID, served.SessionID)
	}
	require.Zero(t, a.Counts().Parks)
}

func TestReplicaThatIsCutOffIsFencedAndItsScopeTakenOver(t *testing.T) {
	store, srv := memdir.New(), child(t)
	l := newLine(store)
	a, b := joinDir(t, l, "a", nil), join(t, store, "b", nil)
	a.note(t, srv, "s", "1")
	a.note(t, srv, "kept", "1")
	mark := filepath.Join(t.TempDir(), "mark")
	done := make(chan error)
	go func() {
		_, err := a.CallTool(context.Background(), srv, mcppool.Call{Tool: "sleep", Scope: "s", Args: map[string]any{"ms": 60000, "mark": mark}})
		done <- err
	}()
	eventually(t, "the tool runs", exists(mark))
	l.Cut()
	err := <-done
	require.ErrorIs(t, err, cluster.ErrOwnerLost)
	require.False(t, mcppool.SafeToRetry(err))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = a.CallTool(ctx, srv, mcppool.Call{Tool: "note", Scope: "kept"})
	require.ErrorIs(t, err, context.DeadlineExceeded, "it waits for the directory")
	require.True(t, mcppool.SafeToRetry(err))

	text, served := b.note(t, srv, "s", "2")
	require.Equal(t, "[2]", text)
	require.Equal(t, "b", served.Node)
	require.True(t, served.Fresh)
	require.EqualValues(t, 1, b.Counts().Takeovers)
	l.mend()
	text, served = a.note(t, srv, "s", "3")
	require.Equal(t, "[2 3]", text)
	require.Equal(t, "b", served.Node)
	text, served = b.note(t, srv, "kept", "2")
	require.Equal(t, "[1 2]", text, "what nobody took goes on with its state")
	require.Equal(t, "a", served.Node)
	require.EqualValues(t, 1, a.Counts().Parks)
}

func TestOutageOfTheDirectoryParksAllAndCostsNoState(t *testing.T) {
	store, srv := memdir.New(), child(t)
	la, lb := newLine(store), newLine(store)
	a, b := joinDir(t, la, "a", nil), joinDir(t, lb, "b", nil)
	a.note(t, srv, "sa", "1")
	b.note(t, srv, "sb", "1")
	la.Cut()
	lb.Cut()
	eventually(t, "both park", func() bool { return a.Counts().Parks == 1 && b.Counts().Parks == 1 })
	pause(ttl)
	lb.mend()
	pause(ttl / 2)
	la.mend()
	for _, r := range []replica{a, b} {
		text, _ := r.note(t, srv, "sa", "2")
		require.Contains(t, text, "[1 2")
		text, _ = r.note(t, srv, "sb", "2")
		require.Contains(t, text, "[1 2")
	}
	require.Zero(t, b.Counts().Fenced, "who comes back first gives the others a whole TTL")
}

// pause waits.
func pause(d time.Duration) { <-time.After(d) }

func TestLostAnswersOfWritesChangeNothing(t *testing.T) {
	store, srv := memdir.New(), child(t)
	l := newLine(store)
	a, b := joinDir(t, l, "a", nil), join(t, store, "b", nil)
	for i := range 6 {
		l.mu.Lock()
		l.deaf = i%3 + 1
		l.mu.Unlock()
		scope := string(rune('a' + i))
		_, served := a.note(t, srv, scope, "1")
		require.Equal(t, "a", served.Node)
		text, served := b.note(t, srv, scope, "2")
		require.Equal(t, "[1 2]", text)
		require.Equal(t, "a", served.Node)
		pause(ttl / 5)
	}
	for range 3 { // of renewals
		l.mu.Lock()
		l.deaf = 1
		l.mu.Unlock()
		pause(ttl / 2)
	}
	text, _ := b.note(t, srv, "a", "3")
	require.Equal(t, "[1 2 3]", text)
	require.Zero(t, a.Counts().Parks)
}

func TestCallWithAConfigurationThatWasClosedMeanwhileIsRefused(t *testing.T) {
	store, srv := memdir.New(), child(t)
	l := newLine(store)
	a, b := join(t, store, "a", nil), joinDir(t, l, "b", nil)
	a.note(t, srv, "s", "1")
	b.note(t, srv, "s", "2")
	l.Cut() // so that b doesn't hear of it
	done := make(chan error)
	go func() { done <- a.CloseServerEverywhere(context.Background(), srv) }()
	eventually(t, "the owner has closed it", func() bool { return a.pool.Stats().Kept == 0 })
	_, err := b.CallTool(t.Context(), srv, mcppool.Call{Tool: "note", Scope: "s"})
	require.ErrorIs(t, err, mcppool.ErrServerClosed)
	require.Zero(t, a.pool.Stats().Kept, "it isn't opened again with what was closed")
	l.mend()
	require.NoError(t, <-done)
	text, _ := b.note(t, srv, "s", "3")
	require.Equal(t, "[3]", text)
}

func TestStoreThatIsLostCostsNoState(t *testing.T) {
	store, srv := memdir.New(), child(t)
	fresh := func() cluster.Directory { return store.Open() }
	a, b := joinDir(t, fresh(), "a", nil), joinDir(t, fresh(), "b", nil)
	a.note(t, srv, "sa", "1")
	b.note(t, srv, "sb", "1")
	store.Wipe()
	for _, r := range []replica{b, a} {
		text, served := r.note(t, srv, "sa", "2")
		require.Contains(t, text, "[1 2")
		require.Equal(t, "a", served.Node)
		text, served = r.note(t, srv, "sb", "2")
		require.Contains(t, text, "[1 2")
		require.Equal(t, "b", served.Node)
	}
}

func TestKillPolicyEndsSessionsWhenTheLeaseIsOver(t *testing.T) {
	store, srv := memdir.New(), child(t)
	l := newLine(store)
	a := joinDir(t, l, "a", func(o *cluster.Options, _ *mcppool.Options) { o.OnFence = cluster.Kill })
	a.note(t, srv, "s", "1")
	l.Cut()
	eventually(t, "its sessions end", func() bool { return a.pool.Stats().Kept == 0 })
	l.mend()
	text, _ := a.note(t, srv, "s", "2")
	require.Equal(t, "[2]", text)
}

func TestServeLocalGoesOnWithoutTheDirectory(t *testing.T) {
	store, srv := memdir.New(), child(t)
	l := newLine(store)
	a := joinDir(t, l, "a", func(o *cluster.Options, _ *mcppool.Options) { o.DuringOutage = cluster.ServeLocal })
	a.note(t, srv, "s", "1")
	l.Cut()
	eventually(t, "the lease is over", func() bool { return a.Counts().Parks == 1 })
	text, _ := a.note(t, srv, "s", "2")
	require.Equal(t, "[1 2]", text)
	l.mend()
}

func TestScopeThatWasClosedWhileItsReplicaWasCutOffStaysClosed(t *testing.T) {
	store, srv := memdir.New(), child(t)
	l := newLine(store)
	a, b := joinDir(t, l, "a", nil), join(t, store, "b", nil)
	a.note(t, srv, "s", "1")
	a.note(t, srv, "t", "1")
	l.Cut()
	require.NoError(t, b.CloseScopeEverywhere(t.Context(), "s"))
	require.EqualValues(t, 1, b.Counts().Fenced)
	l.mend()
	text, _ := a.note(t, srv, "t", "2")
	require.Equal(t, "[1 2]", text)
	text, served := a.note(t, srv, "s", "2")
	require.Equal(t, "[2]", text)
	require.True(t, served.Fresh)
}
