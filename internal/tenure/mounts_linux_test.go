package tenure_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/tenure"
)

func TestRemoveRefusesWhatIsMountedWithin(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a dir")
	at := filepath.Join(dir, "mounted")
	outside := t.TempDir()
	require.NoError(t, os.MkdirAll(at, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "precious"), nil, 0o600))
	if err := syscall.Mount(outside, at, "", syscall.MS_BIND, ""); err != nil {
		t.Skip("only root can mount: ", err)
	}
	err := tenure.Remove(dir)
	require.NoError(t, syscall.Unmount(at, 0))
	require.ErrorContains(t, err, "is a mount point")
	require.FileExists(t, filepath.Join(outside, "precious"))
	require.NoError(t, tenure.Remove(dir))
}
