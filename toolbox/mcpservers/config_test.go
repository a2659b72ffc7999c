package mcpservers_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

// write makes a file of text, and returns its path.
func write(t testing.TB, path, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func names(c *mcpservers.Config) []string {
	list := []string{}
	for _, e := range c.Entries {
		list = append(list, e.Name+"="+e.Server.Command)
	}
	return list
}

func TestOfTwoServersOfOneNameThatOfTheEarlierFileCounts(t *testing.T) {
	dir := t.TempDir()
	one := write(t, filepath.Join(dir, "one.json"), `{"mcpServers": {"b": {"command": "1"}, "a": {"command": "1", "disabled": true}}}`)
	two := write(t, filepath.Join(dir, "two.toml"), "[mcp_servers.a]\ncommand = \"2\"\n[mcp_servers.c]\ncommand = \"2\"\n")
	c := mcpservers.Load(nil, one, two)
	require.Empty(t, c.Errs)
	require.Equal(t, []string{"b=1", "a=1", "c=2"}, names(c))
	require.True(t, c.Entries[1].Disabled)
	require.Len(t, c.Warnings, 1)
	require.Equal(t, two+`:1: server "a": has no effect: `+one+":1 has a server of this name and comes first", c.Warnings[0].String())
}

func TestAFileThatCanNotBeReadCostsItsOwnServers(t *testing.T) {
	dir := t.TempDir()
	broken := write(t, filepath.Join(dir, "broken.json"), `{"mcpServers": {`)
	good := write(t, filepath.Join(dir, "good.json"), `{"mcpServers": {"a": {"command": "x"}}}`)
	none := filepath.Join(dir, "none.json")
	c := mcpservers.Load(nil, broken, none, good)
	require.Equal(t, []string{"a=x"}, names(c))
	require.Len(t, c.Errs, 2)
	require.ErrorContains(t, c.Errs[0], broken+":1: isn't JSON")
	require.ErrorIs(t, c.Errs[1], os.ErrNotExist)
}

func TestWhatClaudeCodesUserDeclinedOfAProjectIsOff(t *testing.T) {
	dir := t.TempDir()
	project := write(t, filepath.Join(dir, ".mcp.json"), `{"mcpServers": {"a": {"command": "${UNSET_HERE}"}, "b": {"command": "x"}}}`)
	user := write(t, filepath.Join(dir, "home", ".claude.json"), `{"projects": {"`+filepath.ToSlash(dir)+`": {"disabledMcpjsonServers": ["a", "c"]}}, "mcpServers": {"c": {"command": "x"}}}`)
	c := mcpservers.Load(&mcpservers.Options{WorkspaceFolder: dir}, project, user)
	require.Len(t, c.Entries, 3)
	require.True(t, c.Entries[0].Disabled)
	require.NoError(t, c.Entries[0].Err)
	require.False(t, c.Entries[1].Disabled)
	require.False(t, c.Entries[2].Disabled, "it isn't of the project's file")
}
