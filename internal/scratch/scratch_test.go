package scratch_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool/internal/scratch"
	"github.com/mcppool/mcppool/internal/tenure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func dirs(t *testing.T) *scratch.Dirs {
	t.Helper()
	d := &scratch.Dirs{Base: filepath.Join(t.TempDir(), "base"), Pool: "pool"}
	t.Cleanup(func() { end(t, d) })
	return d
}

func end(t *testing.T, d *scratch.Dirs) {
	t.Helper()
	_, err := d.End()
	require.NoError(t, err)
}

func fill(t *testing.T, dir *scratch.Dir) string {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir.Path(), "file"), nil, 0o400))
	return dir.Path()
}

func TestFolderOfASessionGoesWithIt(t *testing.T) {
	d := dirs(t)
	a, err := d.Make()
	require.NoError(t, err)
	b, err := d.Make()
	require.NoError(t, err)
	require.NotEqual(t, fill(t, a), fill(t, b))
	info, err := os.Stat(a.Path())
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)
	require.NoError(t, d.Leave(a))
	require.NoDirExists(t, a.Path())
	require.DirExists(t, b.Path())
	end(t, d)
	require.NoDirExists(t, b.Path())
	left, err := os.ReadDir(d.Base)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestFolderOfAScopeOutlivesItsSessionsUntilTheScopeIsClosed(t *testing.T) {
	d := dirs(t)
	owner := scratch.Owner{Scope: "a"}
	first, err := d.Keep(owner)
	require.NoError(t, err)
	other, err := d.Keep(scratch.Owner{Scope: "b"})
	require.NoError(t, err)
	path := fill(t, first)
	require.NoError(t, d.Leave(first))
	again, err := d.Keep(owner)
	require.NoError(t, err)
	require.Equal(t, path, again.Path())

	second, err := d.Keep(owner)
	require.NoError(t, err)
	d.EndScope("a")
	require.NoError(t, d.Leave(second))
	require.DirExists(t, path, "it is in use")
	fresh, err := d.Keep(owner)
	require.NoError(t, err)
	require.NotEqual(t, path, fresh.Path())
	require.NoError(t, d.Leave(again))
	require.NoDirExists(t, path)
	require.NoError(t, d.Leave(fresh))
	d.EndScope("a")
	require.Eventually(t, func() bool {
		_, err := os.Stat(fresh.Path())
		return os.IsNotExist(err)
	}, 5*time.Second, time.Millisecond)
	require.DirExists(t, other.Path())
}

func TestSessionsOfAScopeThatStartAtOnceShareItsFolder(t *testing.T) {
	d := dirs(t)
	var wg sync.WaitGroup
	paths := make([]string, 20)
	for i := range paths {
		wg.Go(func() {
			dir, err := d.Keep(scratch.Owner{Scope: "a"})
			if err == nil {
				paths[i] = dir.Path()
			}
		})
	}
	wg.Wait()
	for _, path := range paths {
		require.Equal(t, paths[0], path)
		require.DirExists(t, path)
	}
}

func TestFolderThatCanNotBeMadeIsAnErrorAndTriedAgain(t *testing.T) {
	d := dirs(t)
	_, err := d.Make()
	require.NoError(t, err)
	pool := filepath.Join(d.Base, "pool")
	require.NoError(t, os.RemoveAll(pool))
	_, err = d.Keep(scratch.Owner{Scope: "a"})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.Mkdir(pool, 0o700))
	dir, err := d.Keep(scratch.Owner{Scope: "a"})
	require.NoError(t, err)
	require.DirExists(t, dir.Path())
}

func TestFoldersOfAPoolThatIsGoneAreRemovedAndNoOthers(t *testing.T) {
	d := dirs(t)
	gone, err := tenure.Begin(d.Base, "gone")
	require.NoError(t, err)
	living, err := tenure.Begin(d.Base, "living")
	require.NoError(t, err)
	gone.Leave()
	_, err = d.Make()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := os.Stat(gone.Dir())
		return os.IsNotExist(err)
	}, 5*time.Second, time.Millisecond)
	require.DirExists(t, living.Dir())
	require.NoError(t, living.End())
}
