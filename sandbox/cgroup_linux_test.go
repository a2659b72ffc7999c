package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/sandbox"
)

// cgroupWith makes a cgroup that may be divided, with a controller; it skips the test where
// there is none.
func cgroupWith(t *testing.T, controller string) string {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		there, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
		if err != nil || controller != "" && !slices.Contains(strings.Fields(string(there)), controller) {
			continue
		}
		if controller != "" && os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+"+controller), 0o644) != nil {
			continue
		}
		dir := filepath.Join(root, fmt.Sprint("mcppool-test-", os.Getpid()))
		err = os.Mkdir(dir, 0o755)
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			below, _ := filepath.Glob(filepath.Join(dir, "mcppool-*"))
			for _, d := range append(below, dir) {
				require.Eventually(t, func() bool { err := os.Remove(d); return err == nil || errors.Is(err, os.ErrNotExist) }, 10*time.Second, time.Millisecond)
			}
		})
		return dir
	}
	t.Skipf("no cgroup of version 2 with the controller %q is this user's to divide", controller)
	return ""
}

func TestABoxHasACgroupOfItsOwn(t *testing.T) {
	parent := cgroupWith(t, "")
	p, srv := boxed(t, sandbox.Rules{Cgroup: sandbox.Cgroup{Parent: parent}})
	does(t, p, srv, "pids", "")
	below, err := filepath.Glob(filepath.Join(parent, "mcppool-*"))
	require.NoError(t, err)
	require.Len(t, below, 1)
	procs, err := os.ReadFile(filepath.Join(below[0], "cgroup.procs"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, strings.Count(string(procs), "\n"), 2, "bubblewrap and the server")
}

func TestACgroupBoundsTheProcessesOfABoxTogether(t *testing.T) {
	p, srv := boxed(t, sandbox.Rules{Cgroup: sandbox.Cgroup{Parent: cgroupWith(t, "pids"), Processes: 40}})
	res, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "fork", Scope: "s"})
	require.NoError(t, err)
	require.True(t, res.IsError)
	require.Contains(t, res.Content[0].(mcp.TextContent).Text, "resource temporarily unavailable")
}

func TestACgroupBoundsTheMemoryOfABox(t *testing.T) {
	p, srv := boxed(t, sandbox.Rules{Cgroup: sandbox.Cgroup{Parent: cgroupWith(t, "memory"), Memory: 64 << 20}})
	_, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "grow", Scope: "s"})
	require.ErrorIs(t, err, mcppool.ErrSessionLost)
}

func TestACgroupThatCanNotBeHadIsSaid(t *testing.T) {
	for parent, says := range map[string]string{
		t.TempDir():       "is no cgroup of version 2",
		"/does/not/exist": "can't be read",
		cgroupWith(t, ""): "no controller memory",
	} {
		p, srv := boxed(t, sandbox.Rules{Cgroup: sandbox.Cgroup{Parent: parent, Memory: 1 << 30}})
		_, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "pids", Scope: "s"})
		var refused *sandbox.Error
		if says == "no controller memory" && err == nil {
			continue // it has
		}
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, says)
	}
}
