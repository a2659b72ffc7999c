package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	aTime   = regexp.MustCompile(`\b\d+\.\d\d s\b`)
	aCount  = regexp.MustCompile(`(_ms|"ms"|_bytes)(": |: )\d+`)
	aMemory = regexp.MustCompile(`\b\d+ MB\b`)
	blanks  = regexp.MustCompile(`  +`)
)

// steady replaces what differs from run to run.
func steady(text, file string) string {
	text = strings.ReplaceAll(text, file, "FILE")
	text = strings.ReplaceAll(text, "..."+file[max(0, len(file)-maxFrom):], "FILE")
	text = aCount.ReplaceAllString(text, "$1${2}0")
	text = aMemory.ReplaceAllString(aTime.ReplaceAllString(text, "N.NN s"), "NN MB")
	return text
}

// golden compares text with a file, once it is steady.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

func TestTheTableSaysOfEachServerWhatItIsAndHowItEnded(t *testing.T) {
	file := cursorFile(
		t,
		named{"fine", hostileEntry()},
		named{"few-tools", hostileEntry().with("excludeTools", []string{"ec*"})},
		named{"chatty", hostileEntry().setenv(chatter, "").with("protocol", "legacy")},
		named{"stubborn", hostileEntry("ignoreeof")},
		named{"immortal", hostileEntry("ignoreeof", "ignoreterm")},
		named{"daemon", hostileEntry("setsid")},
		named{"strict", hostileEntry("strict")},
		named{"dying", hostileEntry("die=start")},
		named{"browser", hostileEntry().with("args", []string{"--user-data-dir=/tmp/x"})},
		named{"missing", entry{"command": "/nowhere/no-such-program"}},
		named{"off", entry{"command": "x", "disabled": true}},
		named{"unset", entry{"command": "x", "args": []string{"${env:MCPPOOL_IS_NOT_SET}"}}},
		named{"odd", hostileEntry().with("colour", "red")},
	)
	got := mcppoolCheck(t, "-close-timeout", "3s", file)
	require.Equal(t, statusFailed, got.status)
	golden(t, "table.txt", blanks.ReplaceAllString(steady(got.stdout, file), "  "))
	require.Equal(t, 13, strings.Count(got.stderr, "\n"), "a line for each server")
	require.Contains(t, got.stderr, "[13/13] ")
	require.Regexp(t, `\[\d+/13\] fine: \d+\.\d\d s, 23 tools\n`, got.stderr)
	require.Regexp(t, `\[\d+/13\] dying: failed: it did not connect: .*exit status 3`, got.stderr)
	require.Regexp(t, `\[\d+/13\] off: off\n`, got.stderr)
}

func TestTheJSONFormIsStable(t *testing.T) {
	file := cursorFile(
		t,
		named{"chatty", hostileEntry().setenv(chatter, "").with("args", []string{"--user-data-dir=/tmp/x"})},
		named{"dying", hostileEntry("die=start").with("colour", "red")},
		named{"off", entry{"command": "x", "disabled": true}},
	)
	got := mcppoolCheck(t, "-json", file)
	require.Equal(t, statusFailed, got.status)
	golden(t, "report.json", steady(got.stdout, file))
	file = cursorFile(t)
	golden(t, "empty.json", steady(mcppoolCheck(t, "-json", file).stdout, file))
}
