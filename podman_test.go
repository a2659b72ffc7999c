//go:build unix

package mcppool_test

import (
	"archive/tar"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// podmanScript runs podman with a storage of its own. A machine whose cgroups are of
// both versions is shown to it as one of the first alone, and one that lets nobody
// raise limits gets some below its own, or crun refuses them.
const podmanScript = `#!/bin/sh
export CONTAINERS_CONF='DIR/containers.conf'
exec unshare -m sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"' sh \
	PODMAN --root 'DIR/root' --runroot 'DIR/run' --tmpdir 'DIR/tmp' --storage-driver vfs --cgroup-manager cgroupfs --events-backend none "$@"
`

// podman is the real one, if it works here.
func podman(t *testing.T) containerCLI {
	t.Helper()
	path, err := exec.LookPath("podman")
	if err != nil || runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("this needs Linux, podman and root")
	}
	dir, err := os.MkdirTemp("", "podman") //nolint:usetesting // a socket's path must be short
	require.NoError(t, err)
	cli := filepath.Join(dir, "podman")
	script := strings.NewReplacer("DIR", dir, "PODMAN", path).Replace(podmanScript)
	require.NoError(t, os.WriteFile(cli, []byte(script), 0o700)) //nolint:gosec // it is run
	conf := "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "containers.conf"), []byte(conf), 0o600))
	run := func(args ...string) string {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, cli, args...).CombinedOutput()
		if err != nil {
			t.Log(string(out))
		}
		return string(out)
	}
	t.Cleanup(func() {
		run("rm", "--all", "--force", "--time", "0")
		require.NoError(t, os.RemoveAll(dir))
	})
	run("import", image(t), "mcppool-test:1")
	args := []string{"--network=none", "--cgroups=disabled", "mcppool-test:1", "/server"}
	if out := run(append([]string{"run", "--rm"}, args...)...); out != "" {
		t.Skip("podman runs no container here: " + out)
	}
	return containerCLI{cli: cli, args: args}
}

// image is a tar with a static program.
func image(t *testing.T) string {
	t.Helper()
	server := filepath.Join(t.TempDir(), "server")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", server, "./internal/container/testdata/server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	data, err := os.ReadFile(server)
	require.NoError(t, err)
	f, err := os.Create(server + ".tar")
	require.NoError(t, err)
	w := tar.NewWriter(f)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "server", Mode: 0o755, Size: int64(len(data))}))
	_, err = w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
	return f.Name()
}
