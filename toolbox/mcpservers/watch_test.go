package mcpservers_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

// variables are an environment that a test changes.
type variables struct{ sync.Map }

func (v *variables) get(name string) (string, bool) {
	value, set := v.Load(name)
	if !set {
		return "", false
	}
	return value.(string), true
}

// watched is a watcher that looks when it is told to, and what it reports.
func watched(t *testing.T, env *variables, paths ...string) (*mcpservers.Watcher, *[]*mcpservers.Config) {
	t.Helper()
	changes := new([]*mcpservers.Config)
	w := mcpservers.Watch(&mcpservers.WatchOptions{
		Options: &mcpservers.Options{Getenv: env.get}, Interval: -1,
		OnChange: func(c *mcpservers.Config) { *changes = append(*changes, c) },
	}, paths...)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w, changes
}

func TestAChangeOfTheFileItsEnvFileOrItsVariablesIsFound(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "mcp.json"), `{"mcpServers": {"a": {"command": "x", "args": ["${TOK}", "${file:key}"], "envFile": ".env"}}}`)
	write(t, filepath.Join(dir, ".env"), "A=1")
	write(t, filepath.Join(dir, "key"), "k1")
	var env variables
	env.Store("TOK", "one")
	w, changes := watched(t, &env, path)
	server := func() []string {
		e := w.Config().Entries[0]
		require.NoError(t, e.Err)
		return append(e.Server.Args, e.Server.Env["A"])
	}
	require.Equal(t, []string{"one", "k1", "1"}, server())
	w.Reload()
	require.Empty(t, *changes, "nothing has changed")

	env.Store("TOK", "two")
	w.Reload()
	require.Equal(t, []string{"two", "k1", "1"}, server())
	write(t, filepath.Join(dir, ".env"), "A=2")
	w.Reload()
	require.Equal(t, []string{"two", "k1", "2"}, server())
	write(t, filepath.Join(dir, "key"), "k2")
	w.Reload()
	require.Equal(t, []string{"two", "k2", "2"}, server())
	env.Store("OTHER", "x")
	w.Reload()
	require.Len(t, *changes, 3, "a variable that isn't used is no change")

	env.Delete("TOK")
	require.Error(t, w.Reload().Entries[0].Err)
	env.Store("TOK", "")
	require.NoError(t, w.Reload().Entries[0].Err, "set and empty isn't unset")
}

func TestABrokenEditKeepsWhatTheFileSaidLastAndSaysSo(t *testing.T) {
	dir := t.TempDir()
	const good = `{"mcpServers": {"a": {"command": "${CMD}"}}}`
	path := write(t, filepath.Join(dir, "mcp.json"), good)
	other := write(t, filepath.Join(dir, "other.json"), `{"mcpServers": {"b": {"command": "1"}}}`)
	var env variables
	env.Store("CMD", "x")
	w, changes := watched(t, &env, path, other)

	write(t, path, `{"mcpServers": {`)
	write(t, other, `{"mcpServers": {"b": {"command": "2"}}}`)
	c := w.Reload()
	require.Equal(t, []string{"a=x", "b=2"}, names(c), "the other file's edit counts")
	require.Len(t, c.Errs, 1)
	require.ErrorContains(t, c.Errs[0], path+":1: isn't JSON")
	env.Store("CMD", "y")
	w.Reload()
	require.Len(t, *changes, 1, "the broken file uses no variable, and is the same as before")

	write(t, path, good)
	c = w.Reload()
	require.Equal(t, []string{"a=y", "b=2"}, names(c))
	require.Empty(t, c.Errs)

	require.NoError(t, os.Remove(path))
	c = w.Reload()
	require.Equal(t, []string{"a=y", "b=2"}, names(c))
	require.ErrorIs(t, c.Errs[0], os.ErrNotExist)
}

func TestAFileThatComesLaterIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	var env variables
	w, _ := watched(t, &env, path)
	require.Empty(t, w.Config().Entries)
	require.Len(t, w.Config().Errs, 1)
	write(t, path, `{"mcpServers": {"a": {"command": "x"}}}`)
	require.Equal(t, []string{"a=x"}, names(w.Reload()))
}

func TestAWatcherLooksByItself(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "mcp.json"), `{"mcpServers": {}}`)
	changed := make(chan *mcpservers.Config, 1)
	w := mcpservers.Watch(&mcpservers.WatchOptions{Interval: time.Millisecond, OnChange: func(c *mcpservers.Config) {
		if len(c.Entries) > 0 {
			select {
			case changed <- c:
			default:
			}
		}
	}}, path)
	write(t, path, `{"mcpServers": {"a": {"command": "x"}}}`)
	select {
	case c := <-changed:
		require.Equal(t, []string{"a=x"}, names(c))
	case <-time.After(30 * time.Second):
		t.Error("the change wasn't found")
	}
	require.NoError(t, w.Close())
	require.NoError(t, w.Close(), "closing twice is no error")
}
