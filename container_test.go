//go:build unix

package mcppool_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppooltest"
)

func init() {
	helpers["host of a container"] = serveContainerHost
	helpers["docker"] = serveDocker
	helpers["docker daemon"] = serveDockerDaemon
	helpers["docker container"] = serveDockerContainer
}

// containerCLI runs containers: docker in miniature (see fakedocker_test.go), or podman.
type containerCLI struct {
	cli  string   // the program
	args []string // of run, up to and with the image
	env  map[string]string
}

func runtimes(t *testing.T, f func(t *testing.T, rt containerCLI)) {
	t.Helper()
	t.Run("docker in miniature", func(t *testing.T) { f(t, fakeDocker(t)) })
	t.Run("podman", func(t *testing.T) { f(t, podman(t)) })
}

// server runs in a container, and ends at nothing but SIGKILL.
func (rt containerCLI) server(before ...string) mcppool.Server {
	args := []string{"run", "-i", "--rm"}
	for name, value := range mcppooltest.Env("ignoreeof", "ignoreterm") {
		args = append(args, "--env", name+"="+value)
	}
	args = append(args, before...)
	return mcppool.Server{Command: rt.cli, Args: append(args, rt.args...), Env: rt.env}
}

// list returns the containers with a label.
func (rt containerCLI) list(t *testing.T, label string) []string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), rt.cli, "ps", "--all", "--quiet", "--no-trunc", "--filter", "label="+label)
	for name, value := range rt.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"))
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// await waits until there are n containers.
func (rt containerCLI) await(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(rt.list(t, "mcppool.pool")) == n }, 10*time.Second, 20*time.Millisecond)
}

func scratchOptions(t *testing.T) *mcppool.Options {
	t.Helper()
	return &mcppool.Options{CloseTimeout: 2 * time.Second, ScratchDir: filepath.Join(t.TempDir(), "scratch")}
}

func TestContainerIsGoneWithItsSessionWhateverItsProgramIgnores(t *testing.T) {
	runtimes(t, func(t *testing.T, rt containerCLI) {
		t.Helper()
		opts := scratchOptions(t)
		p := realPool(t, opts)
		srv := rt.server()
		require.Equal(t, "1", say(t, p, srv, "a", "count", nil))
		require.Equal(t, "2", say(t, p, srv, "a", "count", nil))
		require.Equal(t, "1", say(t, p, srv, "b", "count", nil))
		require.Equal(t, "1", say(t, p, srv, "", "count", nil))
		rt.await(t, 2)
		for s := range p.SessionsOf("a") {
			require.Len(t, rt.list(t, "mcppool.session="+s.ID), 1)
		}
		begun := time.Now()
		require.NoError(t, p.Close())
		require.Less(t, time.Since(begun), opts.CloseTimeout+time.Second)
		require.Empty(t, rt.list(t, "mcppool.pool"))
		left, err := os.ReadDir(filepath.Join(opts.ScratchDir, "containers"))
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

func TestContainerIsStoppedBeforeItIsKilled(t *testing.T) {
	rt := fakeDocker(t)
	opts := scratchOptions(t)
	opts.CloseTimeout, opts.CloseGrace = 6*time.Second, time.Millisecond
	p := realPool(t, opts)
	say(t, p, rt.server(), "a", "count", nil)
	require.NoError(t, p.Close())
	data, err := os.ReadFile(filepath.Join(rt.env["FAKE_DOCKER"], "log"))
	require.NoError(t, err)
	asked := strings.Fields(string(data))
	stop, kill := slices.Index(asked, "stop"), slices.Index(asked, "kill")
	require.Positive(t, stop, "%v", asked)
	require.True(t, kill < 0 || stop < kill, "%v", asked)
}

func TestContainerIsGoneWhenItsClientWasKilled(t *testing.T) {
	runtimes(t, func(t *testing.T, rt containerCLI) {
		t.Helper()
		p := realPool(t, scratchOptions(t))
		srv := rt.server()
		say(t, p, srv, "a", "count", nil)
		first := rt.list(t, "mcppool.pool")
		pid := slices.Collect(p.Sessions())[0].PID
		kill(t, pid)
		requireGone(t, []int{pid})
		require.Equal(t, "1", say(t, p, srv, "a", "count", nil), "of a new session")
		require.Eventually(t, func() bool {
			now := rt.list(t, "mcppool.pool")
			return len(now) == 1 && now[0] != first[0]
		}, 10*time.Second, 20*time.Millisecond)
	})
}

func TestContainersOfAHostThatWasKilledAreRemovedByTheNextAndNobodyElses(t *testing.T) {
	runtimes(t, func(t *testing.T, rt containerCLI) {
		t.Helper()
		opts := scratchOptions(t)
		srv := rt.server()
		living := realPool(t, opts)
		say(t, living, srv, "a", "count", nil)

		host := real(t, "host of a container", "HOST_CLI", rt.cli, "HOST_ARGS", strings.Join(srv.Args, "\n"), "HOST_SCRATCH", opts.ScratchDir)
		cmd := exec.CommandContext(t.Context(), host.Command)
		for _, env := range []map[string]string{rt.env, host.Env} {
			for name, value := range env {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
		}
		cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		pool, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		pool = strings.TrimSpace(pool)
		require.Len(t, rt.list(t, "mcppool.pool="+pool), 1)
		require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
		_ = cmd.Wait()
		require.Len(t, rt.list(t, "mcppool.pool="+pool), 1, "it outlives its host")

		next := realPool(t, opts)
		say(t, next, srv, "a", "count", nil)
		require.Eventually(t, func() bool { return len(rt.list(t, "mcppool.pool="+pool)) == 0 }, 10*time.Second, 20*time.Millisecond)
		rt.await(t, 2)
		require.Equal(t, "2", say(t, living, srv, "a", "count", nil))
	})
}

// serveContainerHost is a host that is to be killed.
func serveContainerHost() {
	p, err := mcppool.New(&mcppool.Options{ScratchDir: os.Getenv("HOST_SCRATCH"), InheritEnv: []string{"*"}})
	must(err)
	srv := mcppool.Server{
		Command: os.Getenv("HOST_CLI"), Args: strings.Split(os.Getenv("HOST_ARGS"), "\n"),
		Env: map[string]string{modeEnv: os.Getenv("HOST_MODE")},
	}
	_, err = p.CallTool(context.Background(), srv, mcppool.Call{Tool: "count", Scope: "s"})
	must(err)
	pool, _, _ := strings.Cut(slices.Collect(p.Sessions())[0].ID, "-")
	fmt.Println(pool)
	select {}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func TestContainerWithANameOfItsOwnIsRefusedWhereThereMayBeSeveral(t *testing.T) {
	rt := fakeDocker(t)
	opts := scratchOptions(t)
	opts.ContainerCLIs = []string{"mydocker"}
	p := realPool(t, opts)
	srv := rt.server("--name", "mine")
	call := mcppool.Call{Tool: "count", Scope: "s"}
	_, err := p.CallTool(t.Context(), srv, call)
	var config *mcppool.ConfigError
	require.ErrorAs(t, err, &config)
	require.Equal(t, "Server.Args", config.Field)
	require.ErrorContains(t, err, "--name")

	srv.Policy.Mode = mcppool.Exclusive
	require.Equal(t, "1", say(t, p, srv, "a", "count", nil))
	require.Equal(t, "1", say(t, p, srv, "b", "count", nil))
	require.Len(t, rt.list(t, "mcppool.pool"), 1)
	require.NoError(t, p.Close())
	require.Empty(t, rt.list(t, "mcppool.pool"))
}

func TestContainerOfAProgramThatAnOptionNamesIsEndedToo(t *testing.T) {
	rt := fakeDocker(t)
	other := filepath.Join(filepath.Dir(rt.cli), "mydocker")
	require.NoError(t, os.Symlink(rt.cli, other))
	opts := scratchOptions(t)
	opts.ContainerCLIs = []string{"mydocker"}
	p := realPool(t, opts)
	srv := rt.server()
	srv.Command = other
	say(t, p, srv, "a", "count", nil)
	require.Len(t, rt.list(t, "mcppool.pool"), 1)
	require.NoError(t, p.Close())
	require.Empty(t, rt.list(t, "mcppool.pool"))
}

func TestContainerThatCanNotBeRemovedIsSaid(t *testing.T) {
	rt := fakeDocker(t)
	opts := scratchOptions(t)
	opts.CloseTimeout = 4 * time.Second
	p, err := mcppool.New(opts)
	require.NoError(t, err)
	say(t, p, rt.server(), "a", "count", nil)
	refuse := filepath.Join(rt.env["FAKE_DOCKER"], "refuse")
	require.NoError(t, os.WriteFile(refuse, nil, 0o600))
	begun := time.Now()
	err = p.Close()
	require.Less(t, time.Since(begun), 20*time.Second)
	var left *mcppool.LeftError
	require.ErrorAs(t, err, &left)
	require.ErrorContains(t, err, "the daemon is not available")
	require.NoError(t, os.Remove(refuse))
	require.NotEmpty(t, rt.list(t, "mcppool.pool"))
}
