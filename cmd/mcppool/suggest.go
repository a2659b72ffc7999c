package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

// slowStart is a start that a chat notices.
const slowStart = 3 * time.Second

// firstModern is the first revision without a handshake. Revisions are dates.
const firstModern = "2026-07-28"

// suggest returns what suits the server better than the defaults.
func suggest(e *mcpservers.Entry, s *server) (all []suggestion) {
	add := func(set, why string) { all = append(all, suggestion{Set: set, Why: why}) }
	took := time.Duration(*s.StartMS) * time.Millisecond
	profile := hasProfile(e.Server.Args)
	if profile {
		add("Policy.Mode: mcppool.Exclusive", "its browser profile serves one process at a time")
	}
	if took >= slowStart && !profile && !e.Server.IsHTTP() {
		why := fmt.Sprintf("a new conversation waits %s for its start", seconds(*s.StartMS))
		if installs(&e.Server) {
			why += "; look again, as the first start of a package installs it"
		}
		add("Policy.Spares: 1", why)
	}
	if e.StartTimeout > 0 && took > e.StartTimeout {
		add("a longer start timeout in the file", fmt.Sprintf("it took %s, and the file allows %s", seconds(*s.StartMS), e.StartTimeout))
	}
	if s.Starts > 1 && s.Protocol < firstModern {
		add(`"protocol": "legacy" in the file`, "it bears no question about newer revisions, and has to be started twice")
	}
	switch {
	case s.End == nil:
		return all
	case s.End.By == "sigterm":
		add("Policy.TermFirst: true", fmt.Sprintf("it ends on SIGTERM, not with its input: each close took %s", seconds(s.End.MS)))
	case s.End.By == "kill":
		add("Options.CloseTimeout: 2 * time.Second", fmt.Sprintf("it has to be killed: each close took %s", seconds(s.End.MS)))
	}
	return all
}

// installers are programs that fetch what they run when it isn't there.
var installers = []string{"npx", "bunx", "pnpx", "pnpm", "yarn", "uvx", "uv", "pipx", "docker", "podman", "nerdctl", "deno", "go", "dnx"}

// installs reports whether a start of the server may be one that installs it.
func installs(srv *mcppool.Server) bool {
	for _, word := range append([]string{srv.Command}, srv.Args...) { // whatever wraps it
		name := strings.TrimSuffix(strings.ToLower(filepath.Base(filepath.ToSlash(word))), filepath.Ext(word))
		if slices.Contains(installers, name) {
			return true
		}
	}
	return false
}

// profileFlags name a browser's profile.
var profileFlags = []string{"--user-data-dir", "--userDataDir", "--user-data", "--profile-directory", "--profile"}

// profilePackages are servers that keep a profile unless they are told not to.
var profilePackages = []string{"@playwright/mcp", "playwright-mcp", "chrome-devtools-mcp"}

// hasProfile reports whether the arguments are those of a server that keeps a
// browser's profile in a place that others use too.
func hasProfile(args []string) bool {
	names := make([]string, len(args))
	for i, arg := range args {
		names[i], _, _ = strings.Cut(arg, "=")
	}
	named := func(flag string) bool { return slices.Contains(names, flag) }
	if slices.ContainsFunc(profileFlags, named) {
		return true
	}
	keeps := slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(profilePackages, packageOf(arg)) })
	return keeps && !slices.Contains(names, "--isolated")
}

// packageOf is the name of an npm package without its version, or of a program
// without its directory.
func packageOf(arg string) string {
	if at := strings.LastIndexByte(arg, '@'); at > 0 {
		arg = arg[:at]
	}
	if strings.HasPrefix(arg, "@") {
		return arg
	}
	return filepath.Base(arg)
}
