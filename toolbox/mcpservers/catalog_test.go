package mcpservers_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

// reloads records what a watched catalog reports.
type reloads struct {
	mu  sync.Mutex
	all []mcpservers.Reload
}

func (r *reloads) add(news mcpservers.Reload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, news)
}

// take returns what was reported since the last time.
func (r *reloads) take() []mcpservers.Reload {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

// closed are the servers whose sessions were closed since the last time.
func (r *reloads) closed() []string {
	var all []string
	for _, news := range r.take() {
		all = append(all, news.Closed...)
	}
	return all
}

func watchCatalog(t *testing.T, pool mcpservers.Closer, opts mcpservers.CatalogOptions, paths ...string) (*mcpservers.WatchedCatalog, *reloads) {
	t.Helper()
	r := new(reloads)
	opts.OnReload = r.add
	w, err := mcpservers.WatchCatalog(pool, &opts, paths...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w, r
}

func newBox(t *testing.T, pool *mcppool.Pool, catalog toolbox.Catalog) *toolbox.Box {
	t.Helper()
	b, err := toolbox.New(pool, catalog, nil)
	require.NoError(t, err)
	return b
}

// call calls a tool of a server in one conversation.
func call(t *testing.T, b *toolbox.Box, server, tool string) error {
	t.Helper()
	return b.Dispatch(t.Context(), toolbox.ToolName(server, tool), nil, toolbox.Conversation{Thread: "t7"}).Err
}

func TestACatalogHasWhatTheFileSays(t *testing.T) {
	f := parseAs(t, ".gemini/settings.json", `{"mcpServers": {
		"b": {"command": "x", "title": "The b", "includeTools": ["get_*"], "excludeTools": ["get_all"], "timeout": 5000},
		"bad": {"args": ["x"]},
		"off": {"command": "y", "disabled": true},
		"": {"command": "z"},
		"a": {"command": "z"}}}`, options())
	config := &mcpservers.Config{Entries: f.Entries}
	catalog := config.Catalog(func(e *toolbox.Entry) {
		require.NoError(t, e.Err)
		e.Disabled = e.Disabled || e.ID == "a"
		e.Name = "edited " + e.Name
		e.ID = "nobody's"
	})
	enabled, err := catalog.List(t.Context())
	require.NoError(t, err)
	require.Len(t, enabled, 2)
	b := enabled[0]
	require.Equal(t, "b", b.ID)
	require.Equal(t, "edited The b", b.Name)
	require.Equal(t, mcppool.Server{Name: "b", Command: "x"}, b.Server)
	require.Equal(t, toolbox.Filter{Include: []string{"get_*"}, Exclude: []string{"get_all"}}, b.Tools)
	require.Equal(t, 5*time.Second, b.Timeout)
	require.Equal(t, "bad", enabled[1].ID)
	require.ErrorAs(t, enabled[1].Err, new(*mcpservers.Error))
	for _, off := range []string{"off", "a"} {
		e, err := catalog.Lookup(t.Context(), off)
		require.NoError(t, err)
		require.True(t, e.Disabled)
	}
	_, err = catalog.Lookup(t.Context(), "")
	require.ErrorIs(t, err, toolbox.ErrUnknownServer)
}

func TestAnEditedFileClosesTheSessionsOfWhatChangedAndOnlyThose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		pool := newPool(t, f)
		file := write(t, filepath.Join(t.TempDir(), "mcp.json"), `{"mcpServers": {
			"same": {"command": "same"}, "changed": {"command": "changed"}, "removed": {"command": "removed"},
			"disabled": {"command": "disabled"}, "renamed": {"command": "renamed"}}}`)
		w, r := watchCatalog(t, pool, mcpservers.CatalogOptions{}, file)
		b := newBox(t, pool, w)
		for _, id := range []string{"same", "changed", "removed", "disabled", "renamed"} {
			require.NoError(t, call(t, b, id, "t"))
		}
		write(t, file, `{"mcpServers": { // edited
			"same": {"command": "same", "disabledTools": ["x"]}, "changed": {"command": "changed", "args": ["-v"]},
			"disabled": {"command": "disabled", "disabled": true}, "new name": {"command": "renamed"}}}`)
		time.Sleep(2*time.Second - 1)
		synctest.Wait()
		require.Empty(t, r.take())
		time.Sleep(1)
		synctest.Wait()
		news := r.take()
		require.Len(t, news, 1)
		require.Equal(t, []string{"changed", "disabled", "removed"}, news[0].Closed)
		require.Same(t, w.Config(), news[0].Config)
		for id, open := range map[string]int{"same": 1, "changed": 0, "removed": 0, "disabled": 0, "renamed": 1} {
			require.Equal(t, open, f.opened(id), id)
		}
		require.NoError(t, call(t, b, "same", "t"))
		require.ErrorIs(t, call(t, b, "same", "x"), toolbox.ErrToolDenied)
		require.ErrorIs(t, call(t, b, "removed", "t"), toolbox.ErrUnknownServer)
		require.ErrorIs(t, call(t, b, "disabled", "t"), toolbox.ErrServerDisabled)
		require.NoError(t, call(t, b, "new name", "t"))
		require.Equal(t, 1, f.dialed("renamed"), "another name is no other server")
		time.Sleep(time.Hour)
		require.Empty(t, r.take(), "files that don't change aren't reported")
	})
}

func TestAFileThatBreaksKeepsTheSessionsOfWhatItSaidLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		pool := newPool(t, f)
		const good = `{"mcpServers": {"s": {"command": "s"}}}`
		file := write(t, filepath.Join(t.TempDir(), "mcp.json"), good)
		w, r := watchCatalog(t, pool, mcpservers.CatalogOptions{Interval: -1}, file)
		b := newBox(t, pool, w)
		require.NoError(t, call(t, b, "s", "t"))
		for _, broken := range []string{`{"mcpServers": {"s": {"command": "s2"`, ``} {
			write(t, file, broken)
			require.Len(t, w.Reload().Errs, 1, broken)
			news := r.take()
			require.Len(t, news, 1)
			require.ErrorAs(t, news[0].Config.Errs[0], new(*mcpservers.Error))
			require.Empty(t, news[0].Closed)
			w.Reload()
			require.Empty(t, r.take(), "the same fault is reported once")
			require.NoError(t, call(t, b, "s", "t"))
		}
		require.NoError(t, os.Remove(file))
		require.ErrorContains(t, w.Reload().Errs[0], "can't be read")
		require.Equal(t, 1, f.dialed("s"), "the session is still there")
		write(t, file, good)
		require.Empty(t, w.Reload().Errs)
		require.Equal(t, 1, f.opened("s"), "what is as it was stays open")
	})
}

func TestAnEntryThatBreaksServesNoCallAndKeepsItsSessionsUntilItIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		pool := newPool(t, f)
		var env variables
		env.Store("CMD", "s")
		file := write(t, filepath.Join(t.TempDir(), "mcp.json"), `{"mcpServers": {"s": {"command": "${CMD}"}, "o": {"command": "o"}}}`)
		w, r := watchCatalog(t, pool, mcpservers.CatalogOptions{Options: &mcpservers.Options{Getenv: env.get}, Interval: -1}, file)
		b := newBox(t, pool, w)
		require.NoError(t, call(t, b, "s", "t"))

		env.Delete("CMD")
		w.Reload()
		err := call(t, b, "s", "t")
		require.ErrorAs(t, err, new(*toolbox.ServerError))
		require.ErrorAs(t, err, new(*mcpservers.Error))
		require.ErrorContains(t, err, `variable "CMD" isn't set`)
		require.NoError(t, call(t, b, "o", "t"), "the other server isn't concerned")
		set, err := b.Tools(t.Context())
		require.NoError(t, err)
		require.Len(t, set.Failed, 1)
		require.Equal(t, "s", set.Failed[0].Server)

		env.Store("CMD", "s")
		w.Reload()
		require.NoError(t, call(t, b, "s", "t"))
		require.Equal(t, 1, f.dialed("s"))
		require.Empty(t, r.closed())

		env.Delete("CMD")
		w.Reload()
		env.Store("CMD", "s2")
		w.Reload()
		require.Equal(t, []string{"s"}, r.closed(), "mended as another one")
		synctest.Wait()
		require.Zero(t, f.opened("s"))

		require.NoError(t, call(t, b, "s", "t"))
		env.Delete("CMD")
		w.Reload()
		write(t, file, `{"mcpServers": {}}`)
		w.Reload()
		require.Equal(t, []string{"o", "s"}, r.closed(), "removed while it was broken")
		synctest.Wait()
		require.Zero(t, f.opened("s2"))
	})
}

func TestAWatchedCatalogThatIsBrokenAtTheStartIsAnError(t *testing.T) {
	_, err := mcpservers.WatchCatalog(nil, nil, filepath.Join(t.TempDir(), "mcp.json"))
	require.ErrorContains(t, err, "can't be read")
}

func TestWhatAWatchedFileSaysBesidesIsReportedAtTheStart(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "mcp.json"), `{"mcpServers": {"a": {"command": "x", "colour": 1}}}`)
	_, r := watchCatalog(t, nil, mcpservers.CatalogOptions{}, file)
	require.Len(t, r.take()[0].Config.Warnings, 1)

	file = write(t, file, `{"mcpServers": {"a": {"args": ["x"]}}}`)
	_, r = watchCatalog(t, nil, mcpservers.CatalogOptions{}, file)
	require.Error(t, r.take()[0].Config.Entries[0].Err)

	file = write(t, file, `{"mcpServers": {"a": {"command": "x"}}}`)
	_, r = watchCatalog(t, nil, mcpservers.CatalogOptions{}, file)
	require.Empty(t, r.take())
}

func TestWhatTheHostEditsHoldsAfterEveryReload(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "mcp.json"), `{"mcpServers": {"a": {"command": "x"}}}`)
	w, _ := watchCatalog(t, newPool(t, &fakes{}), mcpservers.CatalogOptions{Interval: -1, Edit: func(e *toolbox.Entry) { e.Timeout = time.Minute }}, file)
	for _, command := range []string{"x", "y"} {
		write(t, file, `{"mcpServers": {"a": {"command": "`+command+`"}}}`)
		w.Reload()
		e, err := w.Lookup(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, command, e.Server.Command)
		require.Equal(t, time.Minute, e.Timeout)
	}
}

func TestFileEditsRacingDispatchLeaveNoOldSession(t *testing.T) {
	f := &fakes{}
	pool := newPool(t, f)
	versions := []string{"v0", "v1", "v2"}
	text := func(i int) string { return `{"mcpServers": {"s": {"command": "` + versions[i%3] + `"}}}` }
	file := write(t, filepath.Join(t.TempDir(), "mcp.json"), text(0))
	w, _ := watchCatalog(t, pool, mcpservers.CatalogOptions{Interval: -1}, file)
	b := newBox(t, pool, w)
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
		require.Empty(t, w.Reload().Errs)
	}
	close(stop)
	wg.Wait()
	require.NoError(t, call(t, b, "s", "t"))
	for _, v := range versions {
		if v == versions[49%3] {
			require.Positive(t, f.opened(v))
			continue
		}
		require.Eventually(t, func() bool { return f.opened(v) == 0 }, 5*time.Second, time.Millisecond, v)
	}
}

func TestACatalogBoundsAStartAsTheFileDoes(t *testing.T) {
	f := parseAs(t, "config.toml", "[mcp_servers.a]\ncommand = \"x\"\nstartup_timeout_sec = 7\n", options())
	catalog, err := (&mcpservers.Config{Entries: f.Entries}).Catalog(nil).List(t.Context())
	require.NoError(t, err)
	require.Equal(t, 7*time.Second, catalog[0].Server.Policy.ConnectTimeout)
}
