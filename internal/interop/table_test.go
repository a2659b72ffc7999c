//go:build linux

package interop_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/servers.md")

const heading = `# Servers that were tried

Written by ` + "`MCPPOOL_INTEROP=full go test -timeout 60m -update .`" + ` in [internal/interop](../internal/interop/doc.go), which tries
each of these with real processes: state across calls and none across scopes, a deadline and a cancel in a call, a kill between calls and in one,
11 MiB of arguments, a close while busy, each era, many sessions at once, and through npx, whose process is also killed alone. After each nothing is left.

- **Speaks**: the revisions, asked by each era. All begin with ` + "`initialize`" + ` unless 2026-07-28 is among them.
- **Ends on**: what ends an idle one. Those that don't end on the end of their input take all of ` + "`CloseGrace`" + `.
- **11 MiB**: what it does with arguments of that size. The SDKs of TypeScript and Go end at a message that is too long for them (10 and 16 MiB):
  the call fails as a lost session, and the next one has a new session.
- **Also**: what it has besides tools, and tells unasked.
- **Sessions**: how many were used at once.

| server | version | made with | speaks | tools | ends on | 11 MiB | also | sessions | settings | why |
|---|---|---|---|---|---|---|---|---|---|---|
`

var tableFile = filepath.Join("..", "..", "docs", "servers.md")

// rows are those of the servers that were tried in full, by name.
var rows = map[string]string{}

// fixed is the beginning of a server's row, and its end: what isn't found out but set.
func fixed(t testing.TB, s *subject) (begin, end string) {
	t.Helper()
	name, version, ok := strings.Cut(s.gop, "@")
	if !ok {
		name, version = s.npm, locked(t, s.npm)
	}
	return fmt.Sprintf("| %s: `%s` | %s | %s |", s.name, name, version, s.sdk), fmt.Sprintf("| %s | %s |", s.set, s.why)
}

// locked is the version of a package in the lock file.
func locked(t testing.TB, pkg string) string {
	t.Helper()
	data, err := os.ReadFile("npm/package-lock.json")
	require.NoError(t, err)
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	require.NoError(t, json.Unmarshal(data, &lock))
	version := lock.Packages["node_modules/"+pkg].Version
	require.NotEmpty(t, version, "%s isn't locked", pkg)
	return version
}

// recordRow keeps the row of a server for the table, or compares it with the one there.
func recordRow(t testing.TB, s *subject, f *facts) {
	t.Helper()
	if len(f.eras) == 0 || f.big == "" || f.many == 0 {
		return // not all of it was tried
	}
	also := strings.Join(f.said, ", ")
	if also == "" {
		also = "-"
	}
	begin, end := fixed(t, s)
	row := fmt.Sprintf("%s %s | %d | %s | %s | %s | %d %s", begin, strings.Join(f.eras, ", "), f.tools, f.ends, f.big, also, f.many, end)
	rows[s.name] = row
	if !*update {
		data, err := os.ReadFile(tableFile)
		require.NoError(t, err)
		require.Contains(t, string(data), row+"\n", "docs/servers.md: run with -update")
	}
}

// writeTable writes the rows that are new, and keeps the others.
func writeTable(t testing.TB) {
	t.Helper()
	data, err := os.ReadFile(tableFile)
	require.True(t, err == nil || os.IsNotExist(err), "%v", err)
	var text strings.Builder
	text.WriteString(heading)
	for _, s := range subjects() {
		begin, _ := fixed(t, s)
		row := rows[s.name]
		for line := range strings.Lines(string(data)) {
			if row == "" && strings.HasPrefix(line, begin) {
				row = strings.TrimSuffix(line, "\n")
			}
		}
		if row != "" {
			text.WriteString(row + "\n")
		}
	}
	require.NoError(t, os.WriteFile(tableFile, []byte(text.String()), 0o644))
}

// What needs no server to be compared: the servers, their versions and settings.
func TestTheTableHasEveryServerWithItsSettings(t *testing.T) {
	if *update {
		t.Skip("it is about to be written")
	}
	data, err := os.ReadFile(tableFile)
	require.NoError(t, err)
	doc := string(data)
	require.True(t, strings.HasPrefix(doc, heading))
	n := 0
	for line := range strings.Lines(doc[len(heading):]) {
		require.Less(t, n, len(subjects()), "a row of no server: %s", line)
		begin, end := fixed(t, subjects()[n])
		require.True(t, strings.HasPrefix(line, begin), "want a row that begins with\n%s, got\n%s", begin, line)
		require.True(t, strings.HasSuffix(line, end+"\n"), "want a row that ends with\n%s, got\n%s", end, line)
		n++
	}
	require.Len(t, subjects(), n)
}
