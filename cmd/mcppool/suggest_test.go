package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

func TestABrowserProfileIsKnownByItsFlagOrItsPackage(t *testing.T) {
	for _, args := range [][]string{
		{"-y", "@playwright/mcp"},
		{"-y", "@playwright/mcp@latest", "--headless"},
		{"-y", "chrome-devtools-mcp@0.10.2"},
		{"/opt/chrome-devtools-mcp"},
		{"x", "--user-data-dir", "/tmp/profile"},
		{"x", "--profile=work"},
	} {
		require.True(t, hasProfile(args), args)
	}
	for _, args := range [][]string{
		nil,
		{"-y", "@playwright/mcp@latest", "--isolated"},
		{"-y", "@playwright/mcp-extra"},
		{"--profiles=3"},
		{"@"},
	} {
		require.False(t, hasProfile(args), args)
	}
}

func TestAStartThatMayHaveInstalledThePackageIsNoMeasure(t *testing.T) {
	slow := int64(50_000)
	why := func(command string, args ...string) string {
		s := &server{Status: statusOK, StartMS: &slow, Starts: 1}
		return suggest(&mcpservers.Entry{Server: mcppool.Server{Command: command, Args: args}}, s)[0].Why
	}
	for _, line := range [][]string{{"npx", "-y", "a"}, {"/usr/bin/npx", "a"}, {"npx.cmd", "a"}, {"cmd", "/c", "npx", "a"}, {"uvx", "a"}, {"docker", "run", "a"}} {
		require.Contains(t, why(line[0], line[1:]...), "look again", line)
	}
	require.NotContains(t, why("node", "server.js"), "look again")
}

func TestWhatSuitsAServerIsSuggested(t *testing.T) {
	known := func(startMS int64, more func(*server)) *server {
		s := &server{Status: statusOK, StartMS: &startMS, Protocol: "2025-11-25", Starts: 1, End: &end{By: "input"}}
		if more != nil {
			more(s)
		}
		return s
	}
	local := mcpservers.Entry{Server: mcppool.Server{Command: "x"}}
	remote := mcpservers.Entry{Server: mcppool.Server{URL: "https://example.com"}}
	impatient := mcpservers.Entry{StartTimeout: time.Second}
	browser := mcpservers.Entry{Server: mcppool.Server{Command: "npx", Args: []string{"@playwright/mcp"}}}
	for _, c := range []struct {
		name  string
		entry mcpservers.Entry
		s     *server
		want  []string
	}{
		{"quick", local, known(2999, nil), nil},
		{"slow", local, known(3000, nil), []string{"Policy.Spares: 1"}},
		{"slow at a URL", remote, known(3000, nil), nil},
		{"slower than its file allows", impatient, known(1500, nil), []string{"a longer start timeout in the file"}},
		{"a slow browser with a profile can have no spare", browser, known(9000, nil), []string{"Policy.Mode: mcppool.Exclusive"}},
		{"started twice", local, known(1, func(s *server) { s.Starts = 2 }), []string{`"protocol": "legacy" in the file`}},
		{"started twice, and modern", local, known(1, func(s *server) { s.Starts, s.Protocol = 2, "2026-07-28" }), nil},
		{"ends when it is told to", local, known(1, func(s *server) { s.End.By = "sigterm" }), []string{"Policy.TermFirst: true"}},
		{"doesn't end", local, known(1, func(s *server) { s.End.By = "kill" }), []string{"Options.CloseTimeout: 2 * time.Second"}},
	} {
		var got []string
		for _, g := range suggest(&c.entry, c.s) {
			got = append(got, g.Set)
		}
		require.Equal(t, c.want, got, c.name)
	}
}
