package mcpservers

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// parser reads one file's tree.
type parser struct {
	opts      *Options
	file      *File
	path      string // of the file, in full; empty when it has no name
	workspace string // of relative paths; empty when it isn't known
	dir       string // of the file
	root      *node
	prompts   map[string]Prompt
	answers   map[string]answer
	budget    int // of bytes that variables may yet be replaced by
}

const (
	maxServers  = 1000
	maxRules    = 1000 // names in one list of the file about its servers
	maxWarnings = 1000
	maxProblems = 16       // that are reported of one server
	maxReplaced = 16 << 20 // bytes
)

// rawServer is a server that isn't read yet.
type rawServer struct {
	name string
	line int
	node *node
	twin int  // the line of another one of this name; 0 when there is none
	off  bool // a rule of the file switches it off
}

func (p *parser) warn(line int, field, reason string) {
	p.addWarning(Warning{Place: Place{File: p.file.Path, Line: line, Field: field}, Reason: reason})
}

func (p *parser) addWarning(w Warning) {
	if len(p.file.Warnings) < maxWarnings {
		p.file.Warnings = append(p.file.Warnings, w)
	}
}

func (p *parser) document(root *node) *Error {
	p.file.Host = p.opts.Host
	if p.file.Host == UnknownHost {
		p.file.Host = hostOfPath(p.path)
	}
	if root == nil || root.kind == null {
		return nil
	}
	if root.kind != object {
		return &Error{Place: Place{Line: root.line}, Reason: `isn't an object: write {"mcpServers": {...}}`}
	}
	p.root = root
	p.readPrompts()
	servers := p.servers()
	if len(servers) > maxServers {
		return &Error{Place: Place{Line: servers[maxServers].line}, Reason: "has more servers than are read of one file: split it"}
	}
	if p.file.Host == UnknownHost {
		p.file.Host = hostOfServers(servers)
	}
	rules := p.restrictions()
	for _, s := range servers {
		s.off = rules.switchesOff(s.name)
		e := p.entry(s)
		rules.apply(p, &e)
		p.file.Entries = append(p.file.Entries, e)
	}
	return nil
}

// place is where hosts keep their servers.
type place struct {
	path  []string
	host  Host // UnknownHost leaves it to the path
	sure  bool // it is used for nothing else, so that what it holds are servers whatever they look like
	yaml  Host // the host where the format is YAML
	lists Host // the host where it is a list
}

var places = []place{
	{path: []string{"mcpServers"}, sure: true, yaml: LibreChat, lists: Continue},
	{path: []string{"servers"}, host: VSCode, sure: true},
	{path: []string{"mcp", "servers"}, host: VSCode, sure: true},
	{path: []string{"mcp.servers"}, host: VSCode, sure: true},
	{path: []string{"context_servers"}, host: Zed, sure: true},
	{path: []string{"amp.mcpServers"}, host: Amp, sure: true},
	{path: []string{"mcp_servers"}, host: Codex, sure: true},
	{path: []string{"mcp"}},
	{path: []string{"extensions"}, host: Goose},
	{path: []string{"experimental", "modelContextProtocolServers"}, host: Continue, sure: true},
}

// servers collects the servers from wherever the file has them.
func (p *parser) servers() []rawServer {
	found := p.projectServers()
	for _, at := range places {
		n := p.root.get(at.path...)
		if n == nil || n.kind == null || !at.sure && !holdsServers(n) {
			continue
		}
		p.setHost(p.hostOf(at, n))
		found = append(found, p.collect(strings.Join(at.path, "."), n)...)
	}
	if len(found) == 0 {
		found = p.bareServers()
	}
	p.warnOfStrays(found)
	return unique(found)
}

// hostOf is whose servers n are, which stand at a place.
func (p *parser) hostOf(at place, n *node) Host {
	ext := filepath.Ext(p.file.Path)
	switch {
	case at.path[0] == "mcp" && len(at.path) == 1:
		return hostOfMCP(n)
	case n.kind == list && at.lists != UnknownHost:
		return at.lists
	case ext == ".yaml" || ext == ".yml":
		return cmp.Or(at.yaml, at.host)
	}
	return at.host
}

// setHost takes over what the place of the servers says, unless the options or
// the path said something already.
func (p *parser) setHost(h Host) {
	if h != UnknownHost && p.file.Host == UnknownHost {
		p.file.Host = h
	}
}

// hostOfMCP tells the two hosts with servers under "mcp" apart.
func hostOfMCP(n *node) Host {
	for _, m := range n.members {
		if t := m.value.get("type").str(); t == "local" || t == "remote" {
			return OpenCode
		}
	}
	return Crush
}

// collect takes the members of an object or a list apart.
func (p *parser) collect(field string, n *node) []rawServer {
	var found []rawServer
	switch n.kind {
	case object:
		for _, m := range n.members {
			found = append(found, rawServer{name: m.name, line: m.line, node: m.value})
		}
	case list:
		for i, item := range n.items {
			name := item.get("name").str()
			if name == "" {
				name = fmt.Sprintf("%s[%d]", field[strings.LastIndexByte(field, '.')+1:], i)
			}
			found = append(found, rawServer{name: name, line: item.line, node: item})
		}
	default:
		p.warn(n.line, field, "is neither an object nor a list of servers, and has no effect")
	}
	return found
}

// projectServers are those that Claude Code keeps for the workspace, which come
// before those for all projects.
func (p *parser) projectServers() []rawServer {
	projects := p.root.get("projects")
	if projects == nil || projects.kind != object {
		return nil
	}
	p.setHost(ClaudeCode)
	var found []rawServer
	for _, m := range projects.members {
		servers := m.value.get("mcpServers")
		switch {
		case servers == nil || servers.kind != object || len(servers.members) == 0:
		case p.isWorkspace(m.name):
			found = append(found, p.collect("mcpServers", servers)...)
		case p.workspace == "":
			p.warn(m.line, "projects", "has servers of a project: they count where Options.WorkspaceFolder is that project")
		}
	}
	return p.overUsers(found)
}

func (p *parser) isWorkspace(dir string) bool {
	return p.workspace != "" && filepath.Clean(dir) == filepath.Clean(p.workspace)
}

// overUsers takes the servers that a project has too out of those for all.
func (p *parser) overUsers(project []rawServer) []rawServer {
	users := p.root.get("mcpServers")
	if len(project) == 0 || users == nil || users.kind != object {
		return project
	}
	own := make(map[string]bool, len(project))
	for _, s := range project {
		own[s.name] = true
	}
	users.members = slices.DeleteFunc(users.members, func(m member) bool { return own[m.name] })
	return project
}

// bareServers are those of a file that is nothing but servers, as Warp and
// LangChain have it.
func (p *parser) bareServers() []rawServer {
	var found []rawServer
	host := Warp
	for _, m := range p.root.members {
		if m.name == "$schema" || m.value.kind != object {
			continue
		}
		if !looksLikeServer(m.value) {
			return nil
		}
		if m.value.get("transport") != nil {
			host = LangChain
		}
		found = append(found, rawServer{name: m.name, line: m.line, node: m.value})
	}
	if len(found) > 0 {
		p.setHost(host)
	}
	return found
}

// looksLikeServer reports whether n says what to run or to reach.
func looksLikeServer(n *node) bool {
	for _, name := range []string{"command", "cmd", "url", "uri", "serverUrl", "httpUrl"} {
		if v := n.get(name); v != nil && v.kind != boolean && v.kind != number {
			return true
		}
	}
	t := n.get("type").str()
	return t == "builtin" || t == "platform" || n.get("transport", "type") != nil
}

// holdsServers reports whether a member of n looks like a server.
func holdsServers(n *node) bool {
	for _, m := range n.members {
		if looksLikeServer(m.value) {
			return true
		}
	}
	return slices.ContainsFunc(n.items, looksLikeServer)
}

// warnOfStrays names what looks like servers where no host has any, so that a
// misspelt key isn't a silent loss.
func (p *parser) warnOfStrays(found []rawServer) {
	known := make(map[*node]bool, len(found))
	for _, s := range found {
		known[s.node] = true
	}
	const hint = `: servers stand in "mcpServers", or in what the README's table has for the host`
	for _, m := range p.root.members {
		isPlace := slices.ContainsFunc(places, func(at place) bool { return at.path[0] == m.name })
		switch {
		case known[m.value] || isPlace:
		case looksLikeServer(m.value):
			p.warn(m.line, m.name, "looks like a server and has no effect here"+hint)
		case holdsServers(m.value):
			p.warn(m.line, m.name, "looks like servers and isn't known"+hint)
		}
	}
	if len(found) == 0 && len(p.root.members) > 0 && len(p.file.Warnings) == 0 {
		p.warn(0, "", "has no servers"+hint)
	}
}

// unique keeps the first of each name and notes the line of a second one.
func unique(servers []rawServer) []rawServer {
	index := make(map[string]int, len(servers))
	kept := servers[:0]
	for _, s := range servers {
		if i, twice := index[s.name]; twice {
			if kept[i].twin == 0 {
				kept[i].twin = s.line
			}
			continue
		}
		index[s.name] = len(kept)
		kept = append(kept, s)
	}
	return kept
}
