package mcpservers

import (
	"math"
	"strconv"
	"time"
)

// tools reads which tools may be used, and which the host uses without asking.
func (r *entryReader) tools(where string, meaning fieldMeaning, n *node) {
	switch meaning {
	case fieldInclude:
		r.include(where, r.names(where, n))
	case fieldExclude:
		r.e.Tools.Exclude = append(r.e.Tools.Exclude, r.names(where, n)...)
	case fieldTools:
		if n.kind == object {
			r.toolSettings(where, n)
			return
		}
		r.include(where, r.names(where, n))
	case fieldApprove:
		if names, ok := n.texts(); ok {
			r.e.AutoApprove = append(r.e.AutoApprove, names...)
		} else if n.isTrue() {
			r.e.AutoApprove = []string{"*"}
		}
	case fieldTrust:
		if n.isTrue() {
			r.e.AutoApprove = []string{"*"}
		}
	}
}

// include takes over a list of the only tools. Where two fields have one, both
// count, which no name of just one of them passes; that is refused.
func (r *entryReader) include(where string, names []string) {
	switch {
	case r.e.Tools.Include != nil:
		r.fail(where, "is a second list of the only tools: keep one")
	case len(names) == 0 && r.traits.emptyIsAll:
	default:
		r.e.Tools.Include = append(make([]string, 0, len(names)), names...)
	}
}

// toolSettings reads settings by tool. A tool can be switched off; what changes
// one in other ways can't be had here.
func (r *entryReader) toolSettings(where string, n *node) {
	for _, m := range n.members {
		r.line = m.line
		at := where + "." + m.name
		switch enabled := m.value.get("enabled"); {
		case m.value.kind == boolean && m.value.text == "false",
			enabled != nil && enabled.kind == boolean && enabled.text == "false":
			r.e.Tools.Exclude = append(r.e.Tools.Exclude, m.name)
		case m.value.kind == boolean, m.value.kind == object && onlyApproves(m.value):
		default:
			r.fail(at, `changes a tool in a way that isn't done here: keep {"enabled": false}, or remove it`)
		}
	}
}

// onlyApproves reports whether settings of a tool say no more than that it is
// on and who is asked before it is called.
func onlyApproves(n *node) bool {
	for _, m := range n.members {
		if m.name != "enabled" && m.name != "approval_mode" {
			return false
		}
	}
	return true
}

// timeout reads how long a start or a call may take.
func (r *entryReader) timeout(where string, meaning fieldMeaning, n *node) {
	if meaning == fieldTimeout && n.kind == object { // opencode's newer form
		for _, m := range n.members {
			r.line = m.line
			switch at := where + "." + m.name; m.name {
			case "startup":
				r.duration(at, time.Millisecond, m.value, &r.e.StartTimeout)
			case "request":
				r.duration(at, time.Millisecond, m.value, &r.e.CallTimeout)
			default:
				r.warn(at, "isn't known and has no effect")
			}
		}
		return
	}
	unit, to := r.traits.timeout, &r.e.CallTimeout
	switch meaning {
	case fieldStartSeconds:
		unit, to = time.Second, &r.e.StartTimeout
	case fieldStartMillis:
		unit, to = time.Millisecond, &r.e.StartTimeout
	case fieldCallSeconds:
		unit = time.Second
	default:
		if r.traits.startTimeout {
			to = &r.e.StartTimeout
		}
	}
	if unit == 0 {
		r.warn(where, "has no effect: whether it counts seconds or milliseconds depends on the host; set Options.Host")
		return
	}
	r.duration(where, unit, n, to)
	if meaning == fieldTimeout && *to > 0 && *to < r.traits.leastTimeout {
		*to = 0
		r.warn(where, "has no effect: it counts milliseconds, and this host ignores less than a second")
	}
}

func (r *entryReader) duration(where string, unit time.Duration, n *node, to *time.Duration) {
	f, err := strconv.ParseFloat(n.text, 64)
	if n.kind != number || err != nil || math.IsNaN(f) || f < 0 {
		r.fail(where, "isn't a number that a time can be")
		return
	}
	// What is longer than a duration can say never ends.
	*to = time.Duration(min(f*float64(unit), math.MaxInt64/2))
}
