package sandbox_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/sandbox"
)

func needBoxes(t testing.TB) {
	t.Helper()
	if err := sandbox.Available(); err != nil {
		t.Skip("no boxes here: ", err)
	}
}

// boxed is a pool whose servers are boxed, and this binary as a server.
func boxed(t testing.TB, rules sandbox.Rules) (*mcppool.Pool, mcppool.Server) {
	t.Helper()
	needBoxes(t)
	p, err := mcppool.New(&mcppool.Options{
		Command: sandbox.Bubblewrap(rules), CloseTimeout: 4 * time.Second, CloseGrace: time.Second,
		ScratchDir: filepath.Join(t.TempDir(), "scratch"),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	self, err := os.Executable()
	require.NoError(t, err)
	return p, mcppool.Server{Command: self, Env: map[string]string{modeEnv: "server", "GORACE": "atexit_sleep_ms=0"}}
}

// try calls a tool, and reports whether it failed.
func try(t testing.TB, p *mcppool.Pool, srv mcppool.Server, tool, arg string) (text string, failed bool) {
	t.Helper()
	res, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: tool, Args: map[string]any{"arg": arg}, Scope: "s"})
	require.NoError(t, err)
	return res.Content[0].(mcp.TextContent).Text, res.IsError
}

func does(t testing.TB, p *mcppool.Pool, srv mcppool.Server, tool, arg string) string {
	t.Helper()
	text, failed := try(t, p, srv, tool, arg)
	require.False(t, failed, "%s %s: %s", tool, arg, text)
	return text
}

func fails(t testing.TB, p *mcppool.Pool, srv mcppool.Server, tool, arg string) {
	t.Helper()
	text, failed := try(t, p, srv, tool, arg)
	require.True(t, failed, "%s %s: %s", tool, arg, text)
}

func file(t testing.TB, path string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte("secret"), 0o600))
	return path
}

func TestBoxedServerSeesTheFilesThatAreNamedAndNoOthers(t *testing.T) {
	home, readable, writable := t.TempDir(), t.TempDir(), t.TempDir()
	secret, given := file(t, filepath.Join(home, "id_rsa")), file(t, filepath.Join(readable, "given"))
	p, srv := boxed(t, sandbox.Rules{Read: []string{readable}, Write: []string{writable}})
	srv.Env["HOME"] = home
	fails(t, p, srv, "read", secret)
	fails(t, p, srv, "read", "/etc/shadow")
	fails(t, p, srv, "read", "/proc/1/root"+secret)
	does(t, p, srv, "write", filepath.Join(home, "cache"))
	require.NoFileExists(t, filepath.Join(home, "cache"), "its home is its own")
	does(t, p, srv, "write", "/tmp/notes")
	require.NoFileExists(t, "/tmp/notes")
	require.Equal(t, "secret", does(t, p, srv, "read", given))
	fails(t, p, srv, "write", given)
	fails(t, p, srv, "write", "/usr/bin/true")
	fails(t, p, srv, "write", "/top")
	does(t, p, srv, "write", filepath.Join(writable, "new"))
	require.FileExists(t, filepath.Join(writable, "new"))
	require.Equal(t, home, does(t, p, srv, "getwd", ""))
}

func TestFolderWithinAFolderHasItsOwnRule(t *testing.T) {
	outer := t.TempDir()
	inner := filepath.Join(outer, "inner")
	require.NoError(t, os.Mkdir(inner, 0o700))
	p, srv := boxed(t, sandbox.Rules{Read: []string{outer}, Write: []string{inner}})
	fails(t, p, srv, "write", filepath.Join(outer, "file"))
	does(t, p, srv, "write", filepath.Join(inner, "file"))
}

func TestBoxedServerReachesNoListenerOfTheHostUnlessItMay(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	p, srv := boxed(t, sandbox.Rules{})
	fails(t, p, srv, "dial", listener.Addr().String())
	p, srv = boxed(t, sandbox.Rules{Network: true})
	does(t, p, srv, "dial", listener.Addr().String())
}

func TestBoxedServerSeesItsOwnProcessesAlone(t *testing.T) {
	p, srv := boxed(t, sandbox.Rules{})
	n, err := strconv.Atoi(does(t, p, srv, "pids", ""))
	require.NoError(t, err)
	require.LessOrEqual(t, n, 3)
	fails(t, p, srv, "namespace", "")
}

func TestScopesDoNotSeeEachOthersFolders(t *testing.T) {
	p, srv := boxed(t, sandbox.Rules{})
	srv.PrivateDir = mcppool.DirPerSession
	own := filepath.Join(does(t, p, srv, "getenv", "TMPDIR"), "own")
	does(t, p, srv, "write", own)
	require.FileExists(t, own)
	require.Equal(t, filepath.Dir(own), does(t, p, srv, "getwd", ""))
	res, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "read", Args: map[string]any{"arg": own}, Scope: "another"})
	require.NoError(t, err)
	require.True(t, res.IsError)
}

func TestDaemonOfABoxedServerIsGoneAfterTheClose(t *testing.T) {
	p, srv := boxed(t, sandbox.Rules{})
	srv.Env["MARK"] = "mark-" + strconv.Itoa(os.Getpid())
	does(t, p, srv, "daemon", "")
	require.NotEmpty(t, marked("daemon-"+srv.Env["MARK"]))
	require.NoError(t, p.Close())
	require.Empty(t, marked("daemon-"+srv.Env["MARK"]))
}

func TestDaemonOfABoxedServerIsGoneWhenTheHostIsKilled(t *testing.T) {
	needBoxes(t)
	mark := "killed-" + strconv.Itoa(os.Getpid())
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), modeEnv+"=host", "MARK="+mark)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.NotEmpty(t, marked("daemon-"+mark))
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return len(marked("daemon-"+mark)) == 0 }, 10*time.Second, 5*time.Millisecond)
}

func TestBoxedServerCanSaveItsStateOnSigterm(t *testing.T) {
	dir := t.TempDir()
	p, srv := boxed(t, sandbox.Rules{Write: []string{dir}})
	srv.Policy.TermFirst, srv.Env["DEAF"] = true, "1"
	state := filepath.Join(dir, "state")
	does(t, p, srv, "save on SIGTERM", state)
	require.NoError(t, p.Close())
	require.FileExists(t, state)
}

func TestLimitsHoldInTheBox(t *testing.T) {
	p, srv := boxed(t, sandbox.Rules{Limits: sandbox.Limits{OpenFiles: 77}})
	require.Equal(t, "77", does(t, p, srv, "limit", ""))
}

func TestBoxThatCanNotBeMadeSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		rules sandbox.Rules
		dir   string
		why   string
	}{
		"missing":  {rules: sandbox.Rules{Read: []string{"/no/such/folder"}}, why: "no such file"},
		"relative": {rules: sandbox.Rules{Write: []string{"folder"}}, why: "isn't absolute"},
		"outside":  {dir: "/var/log", why: "working directory"},
	} {
		p, srv := boxed(t, c.rules)
		srv.Dir = c.dir
		_, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "pids", Scope: "s"})
		var why *sandbox.Error
		require.ErrorAs(t, err, &why, name)
		require.ErrorContains(t, err, c.why, name)
	}
}

func BenchmarkStart(b *testing.B) {
	p, srv := boxed(b, sandbox.Rules{})
	plain, err := mcppool.New(nil)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, plain.Close()) })
	for name, pool := range map[string]*mcppool.Pool{"boxed": p, "plain": plain} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := pool.CallTool(b.Context(), srv, mcppool.Call{Tool: "getwd"})
				require.NoError(b, err)
			}
		})
		b.Run(name+" warm", func(b *testing.B) {
			for b.Loop() {
				_, err := pool.CallTool(b.Context(), srv, mcppool.Call{Tool: "getwd", Scope: "s"})
				require.NoError(b, err)
			}
		})
	}
}
