package mcpservers

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// remote reads what says how a server at a URL is reached.
func (r *entryReader) remote(where string, meaning fieldMeaning, n *node) {
	switch meaning {
	case fieldURL, fieldHTTPURL:
		if r.urlField != "" {
			r.fail(where, "stands beside "+r.urlField+": remove one")
			return
		}
		r.urlField = where
		r.e.Server.URL = r.text(where, n)
		if meaning == fieldHTTPURL {
			r.state(where, "http")
		}
	case fieldHeaders:
		for name, value := range r.pairs(where, n) {
			r.setHeader(name, value)
		}
	case fieldEnvHeaders:
		r.envHeaders(where, n)
	case fieldBearerEnv:
		if name := n.str(); !isVariable(name) {
			r.fail(where, "isn't a variable's name")
		} else {
			r.setHeader("Authorization", "Bearer "+r.expander(where).named(name))
		}
	case fieldBearer:
		r.bearer(where, n)
	case fieldRequestOptions:
		r.requestOptions(where, n)
	}
}

// envHeaders reads headers by the names of the variables that hold them.
func (r *entryReader) envHeaders(where string, n *node) {
	if n.kind != object {
		r.fail(where, `isn't an object: write {"Header": "VARIABLE"}`)
		return
	}
	for _, m := range n.members {
		r.line = m.line
		at := where + "." + m.name
		if !isVariable(m.value.str()) {
			r.fail(at, "isn't a variable's name")
			continue
		}
		r.setHeader(m.name, r.expander(at).named(m.value.str()))
	}
}

// named is the value of a variable that a field names, unless its server is
// off.
func (x *expander) named(name string) string {
	if x.off {
		return ""
	}
	value, set := x.p.getenv(name)
	if !set {
		x.fail(name, "isn't set: set it", nil)
	}
	return value
}

// bearer reads a token, or that the host signs in.
func (r *entryReader) bearer(where string, n *node) {
	if n.kind != text || n.text == "oauth" {
		r.warn(where, "has no effect: "+noSignIn)
		return
	}
	r.setHeader("Authorization", "Bearer "+r.text(where, n))
}

// requestOptions reads Continue's settings of its HTTP client.
func (r *entryReader) requestOptions(where string, n *node) {
	for _, m := range n.members {
		r.line = m.line
		if at := where + "." + m.name; m.name == "headers" {
			r.remote(at, fieldHeaders, m.value)
		} else {
			r.warn(at, "has no effect here")
		}
	}
}

// checkURL reports what can't be a server's URL, without quoting it: it may
// hold a password.
func (r *entryReader) checkURL() {
	if r.e.Server.URL == "" {
		return
	}
	u, err := url.Parse(r.e.Server.URL)
	switch {
	case err != nil:
		r.fail(r.urlField, "isn't a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		r.fail(r.urlField, "doesn't begin with http:// or https://, and nothing else is spoken here")
	case u.Host == "":
		r.fail(r.urlField, "has no host")
	}
	for _, name := range slices.Sorted(maps.Keys(r.e.Server.Header)) {
		switch {
		case name == "" || strings.ContainsAny(name, " \r\n\x00:"):
			r.fail("headers."+name, "isn't a header's name")
		case strings.ContainsAny(r.e.Server.Header[name], "\r\n\x00"):
			r.fail("headers."+name, "has a line break or a zero byte in its value")
		}
	}
}
