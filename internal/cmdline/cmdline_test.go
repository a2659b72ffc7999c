package cmdline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/cmdline"
)

func TestSplitQuotesAsPOSIXShellsDo(t *testing.T) {
	for line, want := range map[string][]string{
		``:                         nil,
		"  \n":                     nil,
		`''`:                       {""},
		`npx -y pkg 'a b'`:         {"npx", "-y", "pkg", "a b"},
		"  a\t\tb \n c ":           {"a", "b", "c"},
		`a "b c" d`:                {"a", "b c", "d"},
		`a b" "c' 'd`:              {"a", "b c d"},
		`a "" ''`:                  {"a", "", ""},
		`a "\"\\\$\x"`:             {"a", `"\$\x`},
		`a '\'`:                    {"a", `\`},
		`a \ b \'`:                 {"a", " b", "'"},
		"a \\\nb":                  {"a", "b"},
		"a \"b\\\nc\"":             {"a", "bc"},
		`a $HOME *.go # | & ; > b`: {"a", "$HOME", "*.go", "#", "|", "&", ";", ">", "b"},
		`'my program' x`:           {"my program", "x"},
		`é "日本"`:                   {"é", "日本"},
	} {
		got, err := cmdline.Split(line)
		require.NoError(t, err, line)
		require.Equal(t, want, got, line)
	}
}

func TestSplitRefusesWhatIsNotClosed(t *testing.T) {
	for line, reason := range map[string]string{
		`a 'b`:  "has a single quote that isn't closed",
		`a "b`:  "has a double quote that isn't closed",
		`a "b\`: "has a double quote that isn't closed",
		`a b\`:  "ends in a backslash",
	} {
		_, err := cmdline.Split(line)
		require.EqualError(t, err, reason, line)
	}
}
