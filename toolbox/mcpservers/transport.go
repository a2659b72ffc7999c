package mcpservers

import "strings"

// readTransport reads what a server says of its transport: a word, or an object
// that holds the word beside what else there is to say.
func (r *entryReader) readTransport(where string, n *node) {
	switch n.kind {
	case text:
		r.state(where, n.text)
	case object:
		r.duplicates(where+".", n)
		r.members(where+".", n)
	default:
		r.fail(where, "is neither a word (stdio, http, sse) nor an object")
	}
}

// state takes over a word for the transport.
func (r *entryReader) state(where, word string) {
	word = strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(word))
	var stated string
	switch word {
	case "stdio", "local", "process", "command":
		stated = "stdio"
	case "http", "https", "streamablehttp", "streamable", "httpstream", "httpstreamable":
		stated = "http"
	case "sse", "httpsse":
		stated = "sse"
	case "remote", "":
		return // a URL, whatever is spoken there
	case "builtin", "platform", "frontend", "inlinepython":
		r.hostOnly = "is built into its host, which only that can start: a server here has a command or a url"
		return
	case "websocket", "ws":
		r.fail(where, "is WebSocket, which isn't spoken here: stdio, http and sse are")
		return
	default:
		r.fail(where, "isn't a transport that is known: write stdio, http (streamable) or sse")
		return
	}
	if r.transport != "" && r.transport != stated {
		r.fail(where, "contradicts another field, which says "+r.transport+": remove one")
		return
	}
	r.transport = stated
}

// checkTransport compares what is stated with what is there, and takes out what
// has no effect there.
func (r *entryReader) checkTransport() {
	s := &r.e.Server
	r.e.Transport = r.transport
	// A field that is there but is wrong is reported as wrong, not as missing.
	sound := len(r.problems) == 0
	switch {
	case s.Command != "" && r.urlField != "":
		r.fail(r.urlField, "stands beside a command: remove one, a server is run or reached")
	case s.Command != "" && (r.transport == "http" || r.transport == "sse"):
		r.fail("type", "is "+r.transport+", but there is a command and no url: write stdio, or a url")
	case r.urlField != "" && r.transport == "stdio":
		r.fail("type", "is stdio, but there is a url and no command: write http or sse, or a command")
	case s.Command == "" && s.URL == "" && sound:
		r.missing()
	}
	if r.urlField != "" {
		r.unused("command line", len(s.Args) > 0, "args")
		r.unused("environment", len(s.Env) > 0 || r.envFile != "" || len(r.forwarded) > 0, "env")
		r.unused("directory", s.Dir != "", "cwd")
		s.Args, s.Env, s.Dir, r.envFile, r.forwarded = nil, nil, "", "", nil
		return
	}
	if len(s.Header) > 0 {
		r.warn("headers", "has no effect: a server that is run takes no headers")
		s.Header = nil
	}
}

// missing reports that a server says neither what to run nor what to reach.
func (r *entryReader) missing() {
	switch {
	case r.urlField != "" || r.transport == "http" || r.transport == "sse":
		r.fail("url", `is missing or empty: write "url": "https://..."`)
	case r.p.file.Host == Zed:
		r.hostOnly = "has settings only, for an extension of the editor: write its command and args"
		r.fail("", r.hostOnly)
	default:
		r.fail("command", `is missing or empty: write "command": "..." and "args": [...], or "url"`)
	}
}

func (r *entryReader) unused(what string, there bool, field string) {
	if there {
		r.warn(field, "has no effect: a server at a url has no "+what)
	}
}
