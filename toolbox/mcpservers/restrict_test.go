package mcpservers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

func TestEverySwitchOffSwitchesOff(t *testing.T) {
	for _, server := range []string{
		`{"command": "x", "disabled": true}`, `{"command": "x", "enabled": false}`, `{"command": "x", "isActive": false}`,
		`{"command": "x", "active": false}`, `{"command": "x", "disable": true}`, `{"command": "x", "enabled": true, "disabled": true}`,
		`{"args": ["${UNSET}"], "command": "x", "disabled": true}`, `{"disabled": true}`,
	} {
		e := one(t, server)
		require.True(t, e.Disabled, server)
		require.NoError(t, e.Err, server)
	}
	for _, server := range []string{`{"command": "x", "disabled": false}`, `{"command": "x", "enabled": true}`, `{"command": "x", "enabled": null}`} {
		require.False(t, one(t, server).Disabled, server)
	}
}

func TestARestrictionThatIsNotKnownCostsItsServer(t *testing.T) {
	for _, server := range []string{
		`{"command": "x", "blockedTools": ["a"]}`, `{"command": "x", "toolFilter": {"deny": ["a"]}}`, `{"command": "x", "permissions": ["read"]}`,
		`{"command": "x", "readOnly": true}`, `{"command": "x", "allowNetwork": false}`, `{"command": "x", "disallowWrites": true}`,
		`{"command": "x", "sandbox": {"network": false}}`, `{"command": "x", "sandboxEnabled": true}`,
		`{"command": "x", "exclude_tags": ["a"]}`, `{"command": "x", "experimental_environment": "remote"}`, `{"command": "x", "tools": {"a": {"arguments": {}}}}`, `{"command": "x", "tools": "a"}`,
		`{"command": "x", "includeTools": ["a"], "allowedTools": ["b"]}`,
	} {
		require.Error(t, one(t, server).Err, server)
	}
	for _, server := range []string{`{"command": "x", "readOnly": false}`, `{"command": "x", "enableLogs": true}`, `{"command": "x", "sandboxEnabled": false, "sandbox": {"network": {}}}`, `{"command": "x", "color": "red"}`} {
		require.NoError(t, one(t, server).Err, server)
	}
}

func TestListsOfToolsAllowWhatTheySay(t *testing.T) {
	for _, c := range []struct {
		server      string
		yes, no     []string
		autoApprove []string
	}{
		{`{"command": "x"}`, []string{"a", ""}, nil, nil},
		{`{"command": "x", "includeTools": ["a", "b"], "excludeTools": ["b"]}`, []string{"a"}, []string{"b", "c", "A"}, nil},
		{`{"command": "x", "tools": ["*"]}`, []string{"a"}, nil, nil},
		{`{"command": "x", "tools": ["a"]}`, []string{"a"}, []string{"b"}, nil},
		{`{"command": "x", "tools": []}`, nil, []string{"a", ""}, nil},
		{`{"command": "x", "tools": {"a": false, "b": true, "c": {"enabled": false}}}`, []string{"b", "d"}, []string{"a", "c"}, nil},
		{`{"command": "x", "disabledTools": ["get_*_all", "*x"]}`, []string{"get_all", "xa"}, []string{"get_a_all", "get__all", "x", "ax"}, nil},
		{`{"command": "x", "alwaysAllow": ["a"]}`, []string{"a", "b"}, nil, []string{"a"}},
		{`{"command": "x", "trust": true}`, []string{"a"}, nil, []string{"*"}},
	} {
		e := one(t, c.server)
		require.NoError(t, e.Err, c.server)
		require.Equal(t, c.autoApprove, e.AutoApprove, c.server)
		for _, tool := range c.yes {
			require.True(t, e.Tools.Allows(tool), "%s %s", c.server, tool)
		}
		for _, tool := range c.no {
			require.False(t, e.Tools.Allows(tool), "%s %s", c.server, tool)
		}
	}
}

func TestAnEmptyListOfToolsIsWhatItsHostTakesItFor(t *testing.T) {
	const text = "extensions:\n  a: {type: stdio, cmd: x, available_tools: []}\n"
	require.True(t, parseAs(t, "a.yaml", text, nil).Entries[0].Tools.Allows("a"), "Goose: all")
	require.False(t, one(t, `{"command": "x", "available_tools": []}`).Tools.Allows("a"), "others: none")
}

func TestRulesOutsideOfTheServersAreObeyedOrRefused(t *testing.T) {
	const servers = `"mcpServers": {"a": {"command": "x"}, "b": {"url": "https://b.example"}}`
	for rules, want := range map[string][2]string{
		`"mcp": {"allowed": ["a"]}`:                                      {"on", "off"},
		`"mcp": {"excluded": ["a"]}`:                                     {"off", "on"},
		`"mcp": {"allowed": []}`:                                         {"off", "off"},
		`"allowMCPServers": ["b"]`:                                       {"off", "on"},
		`"excludeMCPServers": ["b"]`:                                     {"on", "off"},
		`"excludeMCPServers": "b"`:                                       {"refused", "refused"},
		`"amp.mcpPermissions": [{"matches": {}, "action": "allow"}]`:     {"on", "on"},
		`"amp.mcpPermissions": [{"matches": {}, "action": "reject"}]`:    {"refused", "refused"},
		`"amp.tools.disable": ["mcp__a__x", "builtin:b"]`:                {"on", "on"},
		`"amp.tools.disable": ["mcp__*__x"]`:                             {"refused", "refused"},
		`"chat.mcp.access": "none"`:                                      {"off", "off"},
		`"chat.mcp.access": "all"`:                                       {"on", "on"},
		`"chat.mcp.access": "registry"`:                                  {"refused", "refused"},
		`"excludeMCPServers": ["a"], "amp.mcpPermissions": [{}]`:         {"off", "refused"},
		`"mcpSettings": {"allowedDomains": ["*.example"]}`:               {"on", "on"},
		`"mcpSettings": {"allowedDomains": ["https://b.example"]}`:       {"on", "on"},
		`"mcpSettings": {"allowedDomains": ["http://b.example", "b.x"]}`: {"on", "refused"},
		`"mcpSettings": {"allowedDomains": true}`:                        {"refused", "refused"},
	} {
		f := parse(t, "{"+rules+","+servers+"}")
		for i, e := range f.Entries {
			got := "on"
			switch {
			case e.Err != nil:
				got = "refused"
			case e.Disabled:
				got = "off"
			}
			require.Equal(t, want[i], got, "%s %s", rules, e.Name)
		}
	}
}

func TestOpencodesSwitchesByToolAreObeyedOrRefused(t *testing.T) {
	for rules, want := range map[string]struct {
		err     bool
		yes, no string
	}{
		`"tools": {"a_x": false}`:                     {yes: "y", no: "x"},
		`"tools": {"a_*": false}`:                     {no: "y"},
		`"tools": {"a*": false}`:                      {no: "y"},
		`"tools": {"*": false}`:                       {no: "y"},
		`"tools": {"b_*": false, "bash": false}`:      {yes: "y"},
		`"tools": {"*_x": false}`:                     {err: true},
		`"tools": {"*": false, "a_x": true}`:          {err: true},
		`"tools": {"*": true, "a_x": false}`:          {yes: "y", no: "x"},
		`"permission": {"a_x": "deny", "a_y": "ask"}`: {yes: "y", no: "x"},
		`"permission": "ask"`:                         {yes: "y"},
		`"permission": {"bash": {"*": "deny"}}`:       {yes: "y"},
	} {
		f := parseAs(t, "opencode.json", `{`+rules+`, "mcp": {"a": {"type": "local", "command": ["x"]}}}`, nil)
		e := f.Entries[0]
		require.Equal(t, want.err, e.Err != nil, "%s %v", rules, e.Err)
		require.True(t, want.err || want.yes == "" || e.Tools.Allows(want.yes), rules)
		require.False(t, !want.err && want.no != "" && e.Tools.Allows(want.no), rules)
	}
}

func TestWhatLooksLikeServersElsewhereIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{"mcp_server": {"a": {"command": "x"}}}`:                        `mcp.json:1: mcp_server: looks like servers and isn't known: servers stand in "mcpServers", or in what the README's table has for the host`,
		`{"mcpServers": {"a": {"command": "x"}}, "b": {"command": "y"}}`: `mcp.json:1: b: looks like a server and has no effect here: servers stand in "mcpServers", or in what the README's table has for the host`,
		`{"theme": "dark"}`:   `mcp.json: has no servers: servers stand in "mcpServers", or in what the README's table has for the host`,
		`{"mcpServers": "x"}`: `mcp.json:1: mcpServers: is neither an object nor a list of servers, and has no effect`,
	} {
		require.Equal(t, []string{want}, warnings(parse(t, text)), text)
	}
	for _, text := range []string{
		`{"theme": "dark", "mcpServers": {}, "mcp": {"allowed": []}, "extensions": {"x": true}}`,
	} {
		require.Empty(t, parse(t, text).Entries)
	}
}

func TestTheServersOfAProjectCountForThatProjectAndBeforeTheUsers(t *testing.T) {
	const text = `{"projects": {"/p": {"mcpServers": {"a": {"command": "of-p"}}, "disabledMcpServers": ["b"]}},
"mcpServers": {"a": {"command": "of-all"}, "b": {"command": "x"}}}`
	f := parseAs(t, ".claude.json", text, &mcpservers.Options{WorkspaceFolder: "/p/"})
	require.Equal(t, "of-p", f.Entries[0].Server.Command)
	require.True(t, f.Entries[1].Disabled)
	require.Empty(t, f.Warnings)
	f = parseAs(t, ".claude.json", text, nil)
	require.Equal(t, "of-all", f.Entries[0].Server.Command)
	require.False(t, f.Entries[1].Disabled)
	require.Equal(t, []string{".claude.json:1: projects: has servers of a project: they count where Options.WorkspaceFolder is that project"}, warnings(f))
}
