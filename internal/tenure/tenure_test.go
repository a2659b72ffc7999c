package tenure_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/tenure"
)

func TestMain(m *testing.M) {
	if base := os.Getenv("TENURE_BASE"); base != "" { // a host that is killed
		if _, err := tenure.Begin(base, "host"); err != nil {
			panic(err)
		}
		fmt.Println("ready")
		select {}
	}
	os.Exit(m.Run())
}

func base(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "a base")
}

func TestFolderOfALivingHostIsNobodyElses(t *testing.T) {
	base := base(t)
	held, err := tenure.Begin(base, "a")
	require.NoError(t, err)
	require.DirExists(t, held.Dir())
	require.Empty(t, tenure.Ended(base))
	_, err = tenure.Begin(base, "a")
	require.Error(t, err)
	require.NoError(t, held.End())
	left, err := os.ReadDir(base)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestFolderOfAHostThatWasKilledIsTakenOverOnce(t *testing.T) {
	base := base(t)
	host := exec.CommandContext(t.Context(), os.Args[0])
	host.Env = append(os.Environ(), "TENURE_BASE="+base)
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Empty(t, tenure.Ended(base))
	require.NoError(t, host.Process.Kill())
	_ = host.Wait()
	ended := tenure.Ended(base)
	require.Len(t, ended, 1)
	require.Equal(t, "host", ended[0].ID())
	require.Empty(t, tenure.Ended(base), "it is held")
	require.NoError(t, ended[0].End())
	require.NoDirExists(t, filepath.Join(base, "host"))
}

func TestFolderThatWasLeftIsThereForTheNext(t *testing.T) {
	base := base(t)
	held, err := tenure.Begin(base, "a")
	require.NoError(t, err)
	held.Leave()
	for range 2 {
		ended := tenure.Ended(base)
		require.Len(t, ended, 1)
		ended[0].Leave()
	}
}

func TestBaseThatOthersMayWriteToIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes of files")
	}
	base := base(t)
	require.NoError(t, os.Mkdir(base, 0o700))
	require.NoError(t, os.Chmod(base, 0o777))
	_, err := tenure.Begin(base, "a")
	require.ErrorContains(t, err, "nobody else may write to")
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(t.TempDir(), link))
	_, err = tenure.Begin(link, "a")
	require.ErrorContains(t, err, "must be a folder")
}

func TestRemoveTakesWhatMayNotBeWrittenToAndFollowsNoLink(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, nil, 0o600))
	dir := filepath.Join(t.TempDir(), "dir")
	locked := filepath.Join(dir, "locked", "below")
	require.NoError(t, os.MkdirAll(locked, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(locked, "file"), nil, 0o400))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "link")))
	require.NoError(t, os.Chmod(locked, 0o500))
	require.NoError(t, os.Chmod(filepath.Dir(locked), 0))
	require.NoError(t, tenure.Remove(dir))
	require.NoDirExists(t, dir)
	require.FileExists(t, outside)
	require.NoError(t, tenure.Remove(dir), "nothing is there")
}
