//go:build linux

package interop_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// size is how much is to be tried: "short", "full" or nothing.
func size(t testing.TB) string {
	t.Helper()
	s := os.Getenv("MCPPOOL_INTEROP")
	require.Contains(t, []string{"", "short", "full"}, s, "MCPPOOL_INTEROP")
	return s
}

// cache is a folder that outlives the test.
func cache(t testing.TB) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	require.NoError(t, err)
	dir = filepath.Join(dir, "mcppool-interop")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	return dir
}

// program is a program, or skips the test where it is missing.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is missing", name)
	}
	return path
}

// npmDir is a folder with what npm/package-lock.json says, and the reason why there is none.
// A cache that is whole has a mark of its own, since npm may be interrupted.
func npmDir(t testing.TB) string {
	t.Helper()
	program(t, "node")
	npm := program(t, "npm")
	lock, err := os.ReadFile("npm/package-lock.json")
	require.NoError(t, err)
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache(t), "npm-"+size(t)+"-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(filepath.Join(dir, "whole")); err == nil {
		return dir
	}
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join("npm", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	// Scripts of packages download browsers and the like, which nothing here needs.
	args := []string{"ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"}
	if size(t) == "short" {
		args = append(args, "--omit=dev")
	}
	install(t, dir, npm, args...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "whole"), nil, 0o600))
	return dir
}

// goBin is the program that go install makes of a package at a version.
func goBin(t testing.TB, pkg string) string {
	t.Helper()
	path, version, _ := strings.Cut(pkg, "@")
	dir := filepath.Join(cache(t), "go", strings.ReplaceAll(path, "/", "_")+"@"+version)
	bin := filepath.Join(dir, filepath.Base(path))
	if _, err := os.Stat(bin); err == nil {
		return bin
	}
	require.NoError(t, os.MkdirAll(dir, 0o700))
	install(t, dir, "env", "GOWORK=off", "GOFLAGS=", "GOBIN="+dir, "go", "install", pkg)
	return bin
}

// install runs a client of a registry. Where that can't be reached the test is skipped.
func install(t testing.TB, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return
	}
	for _, sign := range []string{"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "no such host", "connection refused", "i/o timeout", "network is unreachable"} {
		if strings.Contains(string(out), sign) {
			t.Skipf("the registry can't be reached: %s", sign)
		}
	}
	t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
}
