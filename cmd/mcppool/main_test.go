package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool/mcppooltest"
)

// chatter makes the test binary print the words of this variable and its arguments
// to stdout and to stderr before it is the server that it is told to be.
const chatter = "MCPPOOL_CHATTER"

func TestMain(m *testing.M) {
	if words, ok := os.LookupEnv(chatter); ok {
		line := "INFO starting " + strings.Join(append(os.Args[1:], words), " ")
		fmt.Println(line)
		fmt.Fprintln(os.Stderr, line)
	}
	if os.Getenv(counterEnv) != "" {
		serveCounter()
	}
	mcppooltest.Serve()
	goleak.VerifyTestMain(m)
}

// entry is a server of a configuration file.
type entry map[string]any

// hostileEntry is a server of package mcppooltest in these modes.
func hostileEntry(modes ...string) entry {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return entry{"command": self, "env": mcppooltest.Env(modes...)}
}

func (e entry) with(field string, value any) entry {
	e[field] = value
	return e
}

func (e entry) setenv(name, value string) entry {
	e["env"].(map[string]string)[name] = value
	return e
}

// named is a server and its name.
type named struct {
	name  string
	entry entry
}

// cursorFile writes a file as Cursor has it, with a line for each server.
func cursorFile(t testing.TB, servers ...named) string {
	t.Helper()
	lines := make([]string, len(servers))
	for i, s := range servers {
		raw, err := json.Marshal(s.entry)
		require.NoError(t, err)
		lines[i] = fmt.Sprintf("%q: %s", s.name, raw)
	}
	path := filepath.Join(t.TempDir(), ".cursor", "mcp.json")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	text := "{\"mcpServers\": {\n" + strings.Join(lines, ",\n") + "\n}}\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// ran is what a run of the program came to.
type ran struct {
	status         int
	stdout, stderr string
}

func mcppoolCheck(t testing.TB, args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), append([]string{"check"}, args...), &stdout, &stderr)
	return ran{status, stdout.String(), stderr.String()}
}

func TestTheExitStatusSaysWhetherAllServersWork(t *testing.T) {
	fine := named{"fine", hostileEntry()}
	off := named{"off", entry{"command": "${NOT_SET}", "disabled": true}}
	broken := named{"broken", hostileEntry("die=start")}
	require.Equal(t, statusFine, mcppoolCheck(t, cursorFile(t, fine, off)).status)
	require.Equal(t, statusFine, mcppoolCheck(t, cursorFile(t)).status)
	require.Equal(t, statusFailed, mcppoolCheck(t, cursorFile(t, fine, broken)).status)
	require.Equal(t, statusFailed, mcppoolCheck(t, cursorFile(t, named{"bad", entry{}})).status)

	missing := filepath.Join(t.TempDir(), "mcp.json")
	got := mcppoolCheck(t, missing, cursorFile(t, fine))
	require.Equal(t, statusUsage, got.status)
	require.Contains(t, got.stdout, missing+": can't be read: ")
	require.Contains(t, got.stdout, "Enabled servers that work: 1 of 1.", "the other file is served")
}

func TestAWrongCommandLineIsSaidAndStartsNothing(t *testing.T) {
	file := cursorFile(t, named{"fine", hostileEntry()})
	for _, args := range [][]string{
		nil, {"check"}, {"chek", file}, {"check", "-timeout", "0s", file}, {"check", "-parallel", "0", file}, {"check", "-nope", file},
		{"check", "-host", "curser", file},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, statusUsage, run(t.Context(), args, &stdout, &stderr), args)
		require.Empty(t, stdout.String(), args)
		require.Contains(t, stderr.String(), "usage: mcppool check [flags] FILE...", args)
	}
	for _, args := range [][]string{{"help"}, {"check", "-h"}} {
		require.Equal(t, statusFine, run(t.Context(), args, new(bytes.Buffer), new(bytes.Buffer)), args)
	}
}

func TestAnInputIsReadFromTheVariableThatIsNamedForIt(t *testing.T) {
	t.Setenv("MCPPOOL_TEST_KEY", "kkkkkkkk")
	input := named{"vs", hostileEntry("die=start").with("args", []string{"${input:api-key}"})}
	file := cursorFile(t, input)
	require.Contains(t, mcppoolCheck(t, file).stdout, `variable "input:api-key" has no value`)
	require.Contains(t, mcppoolCheck(t, "-input", "api-key=MCPPOOL_TEST_KEY", file).stdout, "it did not connect")
	for _, wrong := range []string{"api-key", "=X", "api-key=MCPPOOL_NOT_SET", "api-key="} {
		require.Equal(t, statusUsage, mcppoolCheck(t, "-input", wrong, file).status, wrong)
	}
}
