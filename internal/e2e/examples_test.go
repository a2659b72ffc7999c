package e2e_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository's.
const root = "../.."

var printedURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+[^ ;,]*`)

// startExample runs a program of examples/ until the test's end, and returns the
// URL that it prints.
func startExample(t *testing.T, name string, args ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-o", program, "./examples/"+name)
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	run := exec.Command(program, append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	run.Stderr = t.Output()
	stdout, err := run.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	t.Cleanup(func() {
		require.NoError(t, run.Process.Signal(os.Interrupt))
		require.NoError(t, run.Wait(), "an example ends in order")
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	url := printedURL.FindString(line)
	require.NotEmpty(t, url, line)
	return url
}
