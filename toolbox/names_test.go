package toolbox_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/toolbox"
)

var accepted = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func TestToolNamesAreWhatTheyWere(t *testing.T) {
	for _, c := range []struct{ server, tool, want string }{
		{"github", "search_issues", "mcp__github__search_issues"},
		{"github", "a__b", "mcp__github__a__b"},
		{"github", "__b", "mcp__github____b"},
		{"_a", "t", "mcp___a__t"},
		{"my-server_2", "T-1", "mcp__my-server_2__T-1"},
		{"a__b", "c", "mcp__a_b_63e5c1c4__c"},
		{"a", "b__c", "mcp__a__b__c"},
		{"a_", "b", "mcp__a_571fb0e3__b"},
		{"a", "_b", "mcp__a___b"},
		{"GitHub Tools", "get.issue", "mcp__GitHub_Tools_20b1c08e__get_issue_e799ff3e"},
		{"GitHub/Tools", "get/issue", "mcp__GitHub_Tools_8ae8c274__get_issue_ee6c1835"},
		{"日本", "ツール", "mcp__x_cf2abf0c__x_76389aaa"},
		{"", "", "mcp__x_e3b0c442__x_e3b0c442"},
		{"s_deadbeef", "t_deadbeef", "mcp__s_deadbeef_cc1089e0__t_deadbeef_9950fe0b"},
		{"123e4567-e89b-12d3-a456-426614174000", "t", "mcp__123e4567-e89b-1_986c0dc9__t"},
		{"s", strings.Repeat("t", 56), "mcp__s__" + strings.Repeat("t", 56)},
		{"s", strings.Repeat("t", 57), "mcp__s__" + strings.Repeat("t", 47) + "_952e7797"},
		{strings.Repeat("s", 24), strings.Repeat("t", 33), "mcp__" + strings.Repeat("s", 24) + "__" + strings.Repeat("t", 33)},
		{strings.Repeat("s", 25), strings.Repeat("t", 34), "mcp__" + strings.Repeat("s", 15) + "_8e241188__" + strings.Repeat("t", 24) + "_f65a4e8d"},
	} {
		got := toolbox.ToolName(c.server, c.tool)
		require.Regexp(t, accepted, got)
		require.Equal(t, c.want, got, "server %q, tool %q", c.server, c.tool)
	}
}

func TestNamesThatNoToolHasAreRefused(t *testing.T) {
	for _, name := range []string{
		"", "mcp__", "mcp__a", "mcp__a__", "mcp____t", "mcp_a__t", "a__t", "xmcp__a__t", "MCP__a__t",
		"mcp__a.b__t", "mcp__a__get.issue", "mcp__a__t\n", "mcp__a__t t",
		"mcp__" + strings.Repeat("a", 25) + "__t",
		"mcp__a__" + strings.Repeat("t", 57),
	} {
		_, _, ok := toolbox.SplitName(name)
		require.False(t, ok, name)
	}
}

func FuzzToolName(f *testing.F) {
	f.Add("github", "search_issues", "git", "hub__search_issues")
	f.Add("a__b", "c", "a", "b__c")
	f.Add("a_", "b", "a", "_b")
	f.Add("a b", "c d", "a.b", "c.d")
	f.Add("", "", "x", "x")
	f.Add(strings.Repeat("s", 70), strings.Repeat("t", 70), strings.Repeat("s", 71), strings.Repeat("t", 71))
	f.Fuzz(func(t *testing.T, s1, t1, s2, t2 string) {
		n1, n2 := toolbox.ToolName(s1, t1), toolbox.ToolName(s2, t2)
		if !accepted.MatchString(n1) {
			t.Fatalf("%q", n1)
		}
		if n1 == n2 && (s1 != s2 || t1 != t2) {
			t.Fatalf("%q/%q and %q/%q are both %q", s1, t1, s2, t2, n1)
		}
		server, tool, ok := toolbox.SplitName(n1)
		if !ok {
			t.Fatalf("%q/%q can't be split: %q", s1, t1, n1)
		}
		if !toolbox.ServerPartIs(server, s1) || !toolbox.ToolPartIs(server, tool, t1) {
			t.Fatalf("%q isn't mapped back to %q/%q", n1, s1, t1)
		}
		if s1 != s2 && toolbox.ServerPartIs(server, s2) || t1 != t2 && toolbox.ToolPartIs(server, tool, t2) {
			t.Fatalf("%q is mapped to %q/%q too", n1, s2, t2)
		}
	})
}

// FuzzSplitName takes any name apart: what comes out as it stands has no other
// name.
func FuzzSplitName(f *testing.F) {
	for _, s := range []string{"mcp__github__search", "mcp__a____b", "mcp__a_12345678__t", "mcp____", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		server, tool, ok := toolbox.SplitName(name)
		if !ok {
			return
		}
		if toolbox.ServerPartIs(server, server) && toolbox.ToolPartIs(server, tool, tool) &&
			toolbox.ToolName(server, tool) != name {
			t.Fatalf("%q is named %q", name, toolbox.ToolName(server, tool))
		}
	})
}
