package mcppooltest

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcppool/mcppool/internal/tenure"
)

// leakTime is how long what ends by itself gets to do so. Tests of this package change it.
var leakTime = 5 * time.Second

// NoLeaks fails t if at its end, after a wait of up to five seconds, there is more than
// there is now of:
//
//   - processes: descendants of this one, and whatever a [Server] of this one has
//     started, also where it has left its parent (Linux; elsewhere none are found),
//   - goroutines,
//   - descriptors (Linux),
//   - temporary files and folders, those of pools among them: until then TMPDIR (on Windows
//     TMP and TEMP) is a folder of the test's own.
//
// Call it first, since what a test cleans up itself must be gone by then: cleanups run
// in reverse order. The test can't be a parallel one. It is called outside of bubbles of
// [testing/synctest], which see to their goroutines themselves.
func NoLeaks(t testing.TB) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, dir)
	}
	before := inventory(dir)
	t.Cleanup(func() {
		t.Helper()
		left := more(before, inventory(dir))
		for deadline := time.Now().Add(leakTime); len(left) > 0 && time.Now().Before(deadline); left = more(before, inventory(dir)) {
			time.Sleep(5 * time.Millisecond)
		}
		for _, what := range left {
			t.Errorf("mcppooltest: left at the end of the test: %s", what)
		}
	})
}

// inventory is what there is: the name of each thing by a key that is its own.
func inventory(dir string) map[string]string {
	all := make(map[string]string)
	addGoroutines(all)
	addProcesses(all)
	addDescriptors(all)
	addFiles(all, dir)
	return all
}

// more returns what is new in now, sorted.
func more(before, now map[string]string) []string {
	maps.DeleteFunc(now, func(key, _ string) bool { _, was := before[key]; return was })
	return slices.Sorted(maps.Values(now))
}

// addGoroutines lists the goroutines but for this one and those of the runtime and of
// package testing, by their ids, which aren't used again.
func addGoroutines(all map[string]string) {
	buf := make([]byte, 1<<16)
	for n := runtime.Stack(buf, true); ; n = runtime.Stack(buf, true) {
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	for i, stack := range strings.Split(string(buf), "\n\n") {
		head, frames, _ := strings.Cut(stack, "\n")
		id, _, _ := strings.Cut(strings.TrimPrefix(head, "goroutine "), " ")
		if i == 0 || ofHarness(frames) {
			continue
		}
		all["goroutine "+id] = head + "\n" + strings.TrimSpace(frames)
	}
}

// ofHarness reports whether a goroutine is one that a test can't end.
func ofHarness(frames string) bool {
	top, _, _ := strings.Cut(frames, "\n")
	for _, prefix := range []string{
		"os/signal.signal_recv", "os/signal.loop", "runtime.ensureSigM",
	} {
		if strings.HasPrefix(top, prefix) {
			return true
		}
	}
	return strings.Contains(frames, "created by testing.") || strings.Contains(frames, "created by os/signal.")
}

// addFiles lists what is in dir, and in the folder of pools there, which stays.
func addFiles(all map[string]string, dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // it was removed, with all it held
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() && e.Name() == filepath.Base(tenure.DefaultBase()) {
			addFiles(all, path)
			continue
		}
		all["file "+path] = "temporary file or folder " + path
	}
}
