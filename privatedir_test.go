package mcppool_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// privateServer tells where its folder is, and works in it.
func privateServer(t *testing.T, life mcppool.PrivateDir) mcppool.Server {
	t.Helper()
	srv := real(t, "state", "WHERE", "in ${mcppool.dir}!")
	srv.Dir, srv.PrivateDir = "${mcppool.dir}", life
	return srv
}

func TestEachSessionHasAFolderOfItsOwnThatGoesWithIt(t *testing.T) {
	opts := &mcppool.Options{ScratchDir: filepath.Join(t.TempDir(), "scratch")}
	p := realPool(t, opts)
	srv := privateServer(t, mcppool.DirPerSession)
	where := func(scope string) string { return say(t, p, srv, scope, "getenv", map[string]any{"name": "WHERE"}) }
	say(t, p, srv, "a", "pid", nil)
	of := slices.Collect(p.SessionsOf("a"))[0]
	require.DirExists(t, of.PrivateDir)
	require.Equal(t, "in "+of.PrivateDir+"!", where("a"))
	require.Equal(t, of.PrivateDir, say(t, p, srv, "a", "tmpdir", nil))
	require.Equal(t, of.PrivateDir, say(t, p, srv, "a", "getwd", nil))
	require.NotEqual(t, where("a"), where("b"))
	require.NotEqual(t, where("a"), where(""))
	require.NoError(t, os.WriteFile(filepath.Join(of.PrivateDir, "page.png"), nil, 0o600))
	p.CloseScope("a")
	require.NotEqual(t, "in "+of.PrivateDir+"!", where("a"))
	require.NoError(t, p.Close())
	require.NoDirExists(t, of.PrivateDir)
	left, err := os.ReadDir(filepath.Join(opts.ScratchDir, "folders"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestFolderOfAScopeOutlivesItsProcessAndNotItsScope(t *testing.T) {
	p := realPool(t, &mcppool.Options{ScratchDir: filepath.Join(t.TempDir(), "scratch")})
	srv := privateServer(t, mcppool.DirPerScope)
	dir := func(scope string) string { return say(t, p, srv, scope, "tmpdir", nil) }
	first := dir("a")
	profile := filepath.Join(first, "profile")
	require.NoError(t, os.WriteFile(profile, nil, 0o600))
	p.RetireServer(srv)
	require.Equal(t, first, dir("a"))
	require.FileExists(t, profile)
	require.NotEqual(t, first, dir("b"))
	require.NotEqual(t, first, dir(""))
	p.CloseScope("a")
	require.NotEqual(t, first, dir("a"))
	require.Eventually(t, func() bool { _, err := os.Stat(first); return os.IsNotExist(err) }, 10*time.Second, 5*time.Millisecond)
}

func TestAListingDecidesNothingAboutAFolder(t *testing.T) {
	for _, lister := range []string{"", "a", "b"} {
		p := realPool(t, &mcppool.Options{ScratchDir: filepath.Join(t.TempDir(), "scratch")})
		srv := privateServer(t, mcppool.DirPerScope)
		_, err := p.ListTools(t.Context(), srv, mcppool.Borrow{Scope: lister})
		require.NoError(t, err)
		dir := func() string { return say(t, p, srv, "a", "tmpdir", nil) }
		first := dir()
		profile := filepath.Join(first, "profile")
		require.NoError(t, os.WriteFile(profile, nil, 0o600))
		p.RetireServer(srv)
		_, err = p.ListTools(t.Context(), srv, mcppool.Borrow{Scope: lister})
		require.NoError(t, err)
		require.Equal(t, first, dir())
		require.FileExists(t, profile)
	}
}

func TestFoldersOfAHostThatIsGoneAreRemovedByTheNext(t *testing.T) {
	scratch := filepath.Join(t.TempDir(), "scratch")
	gone := filepath.Join(scratch, "folders", "gone")
	require.NoError(t, os.MkdirAll(gone, 0o700))
	require.NoError(t, os.WriteFile(gone+".lock", nil, 0o600))
	p := realPool(t, &mcppool.Options{ScratchDir: scratch})
	say(t, p, privateServer(t, mcppool.DirPerSession), "a", "pid", nil)
	require.Eventually(t, func() bool { _, err := os.Stat(gone); return os.IsNotExist(err) }, 10*time.Second, 5*time.Millisecond)
}

func TestServersThatCanHaveNoFolderOfTheirOwnAreRefused(t *testing.T) {
	p := realPool(t, nil)
	for name, change := range map[string]func(*mcppool.Server){
		"shared": func(s *mcppool.Server) { s.Policy.Mode = mcppool.Shared },
		"spares": func(s *mcppool.Server) { s.Policy.Spares = 1 },
		"URL": func(s *mcppool.Server) {
			*s = mcppool.Server{URL: "http://127.0.0.1:1", PrivateDir: mcppool.DirPerSession}
		},
		"not asked": func(s *mcppool.Server) { s.PrivateDir = mcppool.NoPrivateDir },
		"unknown":   func(s *mcppool.Server) { s.PrivateDir = "house" },
	} {
		srv := privateServer(t, mcppool.DirPerScope)
		change(&srv)
		_, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "pid", Scope: "s"})
		var config *mcppool.ConfigError
		require.ErrorAs(t, err, &config, name)
		require.Equal(t, "Server.PrivateDir", config.Field, name)
	}
}

func TestServersThatDifferInTheirFoldersAreDifferent(t *testing.T) {
	a, b := real(t, "state"), real(t, "state")
	b.PrivateDir = mcppool.DirPerSession
	require.False(t, a.Equal(b))
	require.NotEqual(t, a.String(), b.String())
}

func TestSpareOfAServerWithAFolderPerScopeIsRefused(t *testing.T) {
	p := realPool(t, nil)
	err := p.Prewarm(t.Context(), privateServer(t, mcppool.DirPerScope), 1)
	var config *mcppool.ConfigError
	require.ErrorAs(t, err, &config)
}
