package mcpservers

import (
	"net/url"
	"slices"
	"strings"

	"github.com/mcppool/mcppool/toolbox"
)

// rules are what a file says about its servers outside of them.
type rules struct {
	only    []string // the only servers that may run; nil means all
	off     []string // servers that are switched off
	exclude []string // tools of any server that are
	refuse  *rule    // what can't be obeyed
	domains *rule    // hosts that may be reached
	names   []toolRule
}

// rule is a rule's place in the file and what it lists.
type rule struct {
	field  string
	line   int
	values []string
}

// toolRule allows or takes away tools by the names server_tool that a host has
// for them.
type toolRule struct {
	pattern string
	allow   bool
	line    int
}

// restrictions collects the rules of the file.
func (p *parser) restrictions() *rules {
	var ru rules
	lists := []struct {
		path []string
		to   *[]string
	}{
		{[]string{"mcp", "allowed"}, &ru.only}, {[]string{"allowMCPServers"}, &ru.only},
		{[]string{"mcp", "excluded"}, &ru.off}, {[]string{"excludeMCPServers"}, &ru.off},
		{[]string{"disabledMcpServers"}, &ru.off}, {[]string{"disabledServers"}, &ru.off},
		{[]string{"amp.tools.disable"}, &ru.exclude},
	}
	for _, l := range lists {
		p.list(p.root.get(l.path...), strings.Join(l.path, "."), &ru, l.to)
	}
	if projects := p.root.get("projects"); projects != nil && projects.kind == object {
		for _, m := range projects.members {
			if p.isWorkspace(m.name) {
				p.list(m.value.get("disabledMcpServers"), "disabledMcpServers", &ru, &ru.off)
				p.list(m.value.get("disabledMcpjsonServers"), "disabledMcpjsonServers", &ru, &p.file.rejected)
			}
		}
	}
	switch access := p.root.get("chat.mcp.access"); {
	case access.str() == "none":
		ru.only = []string{}
	case access != nil && access.kind != null && access.str() != "all":
		ru.refuse = &rule{field: "chat.mcp.access", line: access.line}
	}
	if n := p.root.get("amp.mcpPermissions"); n != nil && n.kind != null && (n.kind != list || slices.ContainsFunc(n.items, rejects)) {
		ru.refuse = &rule{field: "amp.mcpPermissions", line: n.line}
	}
	if n := p.root.get("mcpSettings", "allowedDomains"); n != nil && n.kind != null {
		if values, ok := n.texts(); ok {
			ru.domains = &rule{field: "mcpSettings.allowedDomains", line: n.line, values: values}
		} else {
			ru.refuse = &rule{field: "mcpSettings.allowedDomains", line: n.line}
		}
	}
	if p.file.Host == OpenCode {
		ru.names = append(toolRules(p.root.get("tools")), toolRules(p.root.get("permission"))...)
		if len(ru.names) > maxRules {
			ru.names, ru.refuse = nil, &rule{field: "tools", line: ru.names[0].line}
		}
	}
	return &ru
}

// list appends the texts of n. What isn't a list of texts, or is endless, can't
// be obeyed.
func (p *parser) list(n *node, field string, ru *rules, to *[]string) {
	if n == nil || n.kind == null {
		return
	}
	values, ok := n.texts()
	if !ok || len(values) > maxRules {
		ru.refuse = &rule{field: field, line: n.line}
		return
	}
	*to = append(append(make([]string, 0, len(*to)+len(values)), *to...), values...)
}

func rejects(n *node) bool { return n.get("action").str() != "allow" }

// toolRules reads opencode's switches and permissions by tool.
func toolRules(n *node) []toolRule {
	if n == nil || n.kind != object {
		return nil
	}
	var list []toolRule
	for _, m := range n.members {
		off := m.value.kind == boolean && m.value.text == "false" || m.value.str() == "deny"
		list = append(list, toolRule{pattern: m.name, allow: !off, line: m.line})
	}
	return list
}

// switchesOff reports whether the server of a name is off.
func (ru *rules) switchesOff(name string) bool {
	return ru.only != nil && !slices.Contains(ru.only, name) || slices.Contains(ru.off, name)
}

// apply applies what the rules say of tools and hosts to one server.
func (ru *rules) apply(p *parser, e *Entry) {
	refuse := func(field string, line int, reason string) {
		if e.Err == nil && !e.Disabled {
			e.Err = &Error{Place: Place{File: p.file.Path, Line: line, Server: e.Name, Field: field}, Reason: reason}
		}
	}
	if ru.refuse != nil {
		refuse(ru.refuse.field, ru.refuse.line, "restricts servers in a way that isn't obeyed here: remove it, or switch servers off one by one")
	}
	if ru.domains != nil && e.Server.URL != "" && !ru.domains.reaches(e.Server.URL) {
		refuse(ru.domains.field, ru.domains.line, "doesn't list the host of the server's url: add it, or remove the server")
	}
	const pattern = "has a pattern for tools that isn't obeyed here: write out the server's name before the tool's"
	for _, t := range ru.names {
		if !t.apply(e, e.Name+"_") {
			refuse("tools", t.line, pattern)
		}
	}
	for _, tool := range ru.exclude {
		switch {
		case strings.HasPrefix(tool, "mcp__"): // mcp__server__tool
			if t := (toolRule{pattern: tool}); !t.apply(e, "mcp__"+e.Name+"__") {
				refuse("amp.tools.disable", e.Line, pattern)
			}
		case !strings.Contains(tool, ":"): // the host's own tools have one
			e.Tools.Exclude = append(e.Tools.Exclude, tool)
		}
	}
}

// reaches reports whether the domains list the host of a URL.
func (r *rule) reaches(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(r.values, func(domain string) bool {
		if d, err := url.Parse(domain); err == nil && d.Host != "" {
			return d.Scheme == u.Scheme && strings.EqualFold(d.Host, u.Host)
		}
		return matchStar(strings.ToLower(domain), strings.ToLower(u.Hostname()))
	})
}

// apply applies a rule to a server whose tools' names begin with prefix, and
// reports whether it can be: of a pattern that might mean some of its tools it
// must be clear which.
func (t toolRule) apply(e *Entry, prefix string) bool {
	tool, own := strings.CutPrefix(t.pattern, prefix)
	literal, _, star := strings.Cut(t.pattern, "*")
	if !own {
		switch {
		case !star || !strings.HasPrefix(prefix, literal):
			return true // another server's, or the host's own tools
		case t.pattern != literal+"*":
			return t.allow
		}
		tool = "*"
	}
	if t.allow {
		// What an earlier rule took away and this one gives back can't be said
		// with a list of excluded tools.
		return !slices.ContainsFunc(e.Tools.Exclude, func(x string) bool { return matchStar(x, tool) || matchStar(tool, x) })
	}
	e.Tools.Exclude = append(e.Tools.Exclude, tool)
	return true
}

// matchStar reports whether name is pattern with some text for each *.
func matchStar(pattern, name string) bool {
	return toolbox.Filter{Include: []string{pattern}}.Allows(name)
}
