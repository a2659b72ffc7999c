package toolbox_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/toolbox"
)

// reloads records what a watched catalog says.
type reloads struct {
	mu  sync.Mutex
	all []toolbox.Reload
}

func (r *reloads) add(news toolbox.Reload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, news)
}

// take gives what was said since the last time.
func (r *reloads) take() []toolbox.Reload {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

func watch(t *testing.T, pool toolbox.Closer, opts toolbox.WatchOptions, files ...string) (*toolbox.Watched, *reloads) {
	t.Helper()
	r := new(reloads)
	opts.OnReload = r.add
	w, err := toolbox.WatchConfig(pool, &opts, files...)
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return w, r
}

func TestAnEditedFileClosesTheSessionsOfWhatChangedAndOnlyThose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		pool := newPool(t, f)
		file := filepath.Join(t.TempDir(), "mcp.json")
		write(t, file, `{"mcpServers": {
			"same": {"command": "same"}, "changed": {"command": "changed"}, "removed": {"command": "removed"},
			"disabled": {"command": "disabled"}, "renamed": {"command": "renamed"}}}`)
		w, r := watch(t, pool, toolbox.WatchOptions{}, file)
		b, err := toolbox.New(pool, w, nil)
		require.NoError(t, err)
		for _, id := range []string{"same", "changed", "removed", "disabled", "renamed"} {
			require.NoError(t, dispatch(t, b, "mcp__"+id+"__t", "").Err)
		}
		write(t, file, `{"mcpServers": { // edited
			"same": {"command": "same", "disabledTools": ["x"]}, "changed": {"command": "changed", "args": ["-v"]},
			"disabled": {"command": "disabled", "disabled": true}, "new name": {"command": "renamed"}}}`)
		time.Sleep(2*time.Second - 1)
		synctest.Wait()
		require.Empty(t, r.take())
		time.Sleep(1)
		synctest.Wait()
		require.Equal(t, []toolbox.Reload{{Closed: []string{"changed", "disabled", "removed"}}}, r.take())
		for id, open := range map[string]int{"same": 1, "changed": 0, "removed": 0, "disabled": 0, "renamed": 1} {
			require.Equal(t, open, f.opened(id), id)
		}
		require.NoError(t, dispatch(t, b, "mcp__same__t", "").Err)
		require.ErrorIs(t, dispatch(t, b, "mcp__same__x", "").Err, toolbox.ErrToolDenied)
		require.ErrorIs(t, dispatch(t, b, "mcp__removed__t", "").Err, toolbox.ErrUnknownServer)
		require.ErrorIs(t, dispatch(t, b, "mcp__disabled__t", "").Err, toolbox.ErrServerDisabled)
		require.NoError(t, dispatch(t, b, toolbox.ToolName("new name", "t"), "").Err)
		require.Equal(t, 1, f.dialed("renamed"), "another name is no other server")
		time.Sleep(time.Hour)
		require.Empty(t, r.take(), "files that don't change aren't told of")
	})
}

func TestABrokenEditKeepsTheLastGoodConfigurationAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		pool := newPool(t, f)
		file := filepath.Join(t.TempDir(), "mcp.json")
		const good = `{"mcpServers": {"s": {"command": "s"}}}`
		write(t, file, good)
		w, r := watch(t, pool, toolbox.WatchOptions{Interval: -1}, file)
		b, err := toolbox.New(pool, w, nil)
		require.NoError(t, err)
		require.NoError(t, dispatch(t, b, "mcp__s__t", "").Err)
		for _, broken := range []string{`{"mcpServers": {"s": {"command": "s2"`, `{"mcpServers": {"s": {"command": "${NOT_SET_ANYWHERE}"}}}`, ``, `{}`} {
			write(t, file, broken)
			require.Error(t, w.Reload())
			require.Error(t, w.Err())
			news := r.take()
			require.Len(t, news, 1)
			require.ErrorAs(t, news[0].Err, new(*toolbox.ConfigError))
			require.Empty(t, news[0].Closed)
			require.Error(t, w.Reload())
			require.Empty(t, r.take(), "the same fault is told of once")
			require.NoError(t, dispatch(t, b, "mcp__s__t", "").Err)
		}
		require.NoError(t, os.Remove(file))
		require.ErrorContains(t, w.Reload(), "can't be read")
		require.Equal(t, 1, f.dialed("s"), "the session is still there")
		write(t, file, good)
		require.NoError(t, w.Reload())
		require.NoError(t, w.Err())
		require.Equal(t, 1, f.opened("s"), "what is as it was stays open")
	})
}

func TestAWatchedCatalogThatIsBrokenAtTheStartIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp.json")
	_, err := toolbox.WatchConfig(nil, nil, file)
	require.ErrorContains(t, err, "can't be read")
}

func TestWhatAWatchedFileSaysBesidesIsToldAtTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp.json")
	write(t, file, `{"mcpServers": {}, "theme": 1}`)
	_, r := watch(t, nil, toolbox.WatchOptions{}, file)
	require.Len(t, r.take()[0].Warnings, 1)
}

func TestFileEditsRacingDispatchLeaveNoOldSession(t *testing.T) {
	f := &fakes{}
	pool := newPool(t, f)
	file := filepath.Join(t.TempDir(), "mcp.json")
	versions := []string{"v0", "v1", "v2"}
	text := func(i int) string { return `{"mcpServers": {"s": {"command": "` + versions[i%3] + `"}}}` }
	write(t, file, text(0))
	w, _ := watch(t, pool, toolbox.WatchOptions{Interval: -1}, file)
	b, err := toolbox.New(pool, w, nil)
	require.NoError(t, err)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			conv := toolbox.Conversation{Thread: string(rune('a' + i))}
			for {
				select {
				case <-stop:
					return
				default:
					b.Dispatch(t.Context(), "mcp__s__t", nil, conv)
				}
			}
		})
	}
	for i := range 50 {
		write(t, file, text(i))
		require.NoError(t, w.Reload())
	}
	close(stop)
	wg.Wait()
	require.NoError(t, dispatch(t, b, "mcp__s__t", "").Err)
	for _, v := range versions {
		if v == versions[49%3] {
			require.Positive(t, f.opened(v))
			continue
		}
		require.Eventually(t, func() bool { return f.opened(v) == 0 }, 5*time.Second, time.Millisecond, v)
	}
}
