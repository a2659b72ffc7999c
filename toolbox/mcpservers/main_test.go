package mcpservers_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parse reads text as JSON of no known host, with the variables of options().
func parse(t testing.TB, text string) *mcpservers.File {
	t.Helper()
	return parseAs(t, "mcp.json", text, options())
}

func parseAs(t testing.TB, name, text string, opts *mcpservers.Options) *mcpservers.File {
	t.Helper()
	f, err := mcpservers.Parse(name, []byte(text), opts)
	require.NoError(t, err)
	return f
}

// one is the only server of text.
func one(t testing.TB, server string) mcpservers.Entry {
	t.Helper()
	f := parse(t, `{"mcpServers": {"a": `+server+`}}`)
	require.Len(t, f.Entries, 1)
	return f.Entries[0]
}

func warnings(f *mcpservers.File) []string {
	list := []string{}
	for _, w := range f.Warnings {
		list = append(list, w.String())
	}
	return list
}
