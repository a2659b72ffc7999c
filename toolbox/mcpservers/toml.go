package mcpservers

import (
	"bytes"

	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML builds the tree from the parser's expressions rather than from what
// its decoder makes of them: a name that comes twice costs one server here, and
// places stay known.
func parseTOML(data []byte) (*node, *Error) {
	if bytes.Count(data, []byte("[")) > maxBrackets || bytes.Count(data, []byte("{")) > maxBrackets {
		return nil, &Error{Reason: "isn't TOML that can be read here: it has too many brackets"}
	}
	b := tomlBuilder{
		root: &node{kind: object, line: 1}, index: make(map[tomlKey]*node), headed: make(map[*node]bool), text: data, line: 1,
	}
	b.p.Reset(data)
	table := b.root
	for b.p.NextExpression() {
		var ok bool
		switch e := b.p.Expression(); e.Kind {
		case unstable.Table:
			b.moveTo(e)
			table, ok = b.table(keyOf(e.Key()))
		case unstable.ArrayTable:
			b.moveTo(e)
			table, ok = b.element(keyOf(e.Key()))
		case unstable.KeyValue:
			ok = b.set(table, e, 0)
		default:
			ok = true // comments
		}
		if !ok {
			return nil, &Error{Place: Place{Line: b.line}, Reason: "isn't TOML that can be read here: a value stands where a table is meant, or tables are nested too deep"}
		}
	}
	if err := b.p.Error(); err != nil {
		return nil, b.syntaxError(err)
	}
	if len(b.root.members) == 0 {
		return nil, nil
	}
	return b.root, nil
}

// maxBrackets keeps the parser's recursion, which follows nesting, within a
// goroutine's stack.
const maxBrackets = 100_000

// syntaxError keeps the place, but not the parser's words, which may quote a
// value without quotes.
func (b *tomlBuilder) syntaxError(err error) *Error {
	e := &Error{Reason: "isn't TOML: texts stand in quotes, and a line is [table] or name = value"}
	if p, ok := err.(*unstable.ParserError); ok && len(p.Highlight) > 0 {
		e.Line = b.p.Shape(b.p.Range(p.Highlight)).Start.Line
	}
	return e
}

// tomlKey is a name in a table.
type tomlKey struct {
	table *node
	name  string
}

type tomlBuilder struct {
	p      unstable.Parser
	root   *node
	index  map[tomlKey]*node // the last member of each name
	headed map[*node]bool    // tables that had a [header] of their own
	text   []byte
	seen   int // bytes whose lines are counted
	line   int // of the last expression
}

func keyOf(it unstable.Iterator) []string {
	var key []string
	for it.Next() {
		key = append(key, string(it.Node().Data))
	}
	return key
}

// moveTo makes line that of an expression: of the first part of its key.
func (b *tomlBuilder) moveTo(e *unstable.Node) {
	it := e.Key()
	if it.Next() {
		if at := int(it.Node().Raw.Offset); at >= b.seen && at <= len(b.text) {
			b.line += bytes.Count(b.text[b.seen:at], []byte("\n"))
			b.seen = at
		}
	}
}

func (b *tomlBuilder) add(table *node, name string, value *node) {
	table.members = append(table.members, member{name: name, line: b.line, value: value})
	b.index[tomlKey{table, name}] = value
}

// descend is the table at key below n, made where there is none.
func (b *tomlBuilder) descend(n *node, key []string) (*node, bool) {
	if len(key) > maxDepth {
		return nil, false
	}
	for _, name := range key {
		next := b.index[tomlKey{n, name}]
		if next == nil {
			next = &node{kind: object, line: b.line}
			b.add(n, name, next)
		}
		if next.kind == list && len(next.items) > 0 {
			next = next.items[len(next.items)-1]
		}
		if next.kind != object {
			return nil, false
		}
		n = next
	}
	return n, true
}

// table is that of a [header]. A second header of the same key is kept as a
// second member, which its reader refuses.
func (b *tomlBuilder) table(key []string) (*node, bool) {
	parent, ok := b.descend(b.root, key[:len(key)-1])
	if !ok {
		return nil, false
	}
	name := key[len(key)-1]
	if old := b.index[tomlKey{parent, name}]; old != nil && old.kind == object && !b.headed[old] {
		b.headed[old] = true
		return old, true
	}
	t := &node{kind: object, line: b.line}
	b.headed[t] = true
	b.add(parent, name, t)
	return t, true
}

// element is a new one of an [[array]] of tables.
func (b *tomlBuilder) element(key []string) (*node, bool) {
	parent, ok := b.descend(b.root, key[:len(key)-1])
	if !ok {
		return nil, false
	}
	name := key[len(key)-1]
	array := b.index[tomlKey{parent, name}]
	if array == nil {
		array = &node{kind: list, line: b.line}
		b.add(parent, name, array)
	}
	if array.kind != list {
		return nil, false
	}
	t := &node{kind: object, line: b.line}
	array.items = append(array.items, t)
	return t, true
}

// set adds name = value to a table.
func (b *tomlBuilder) set(table *node, e *unstable.Node, depth int) bool {
	b.moveTo(e)
	key := keyOf(e.Key())
	parent, ok := b.descend(table, key[:len(key)-1])
	if !ok {
		return false
	}
	value, ok := b.value(e.Value(), depth+1)
	if !ok {
		return false
	}
	b.add(parent, key[len(key)-1], value)
	return true
}

func (b *tomlBuilder) value(v *unstable.Node, depth int) (*node, bool) {
	if depth > maxDepth {
		return nil, false
	}
	n := &node{line: b.line}
	switch v.Kind {
	case unstable.Array:
		n.kind = list
		for it := v.Children(); it.Next(); {
			item, ok := b.value(it.Node(), depth+1)
			if !ok {
				return nil, false
			}
			n.items = append(n.items, item)
		}
	case unstable.InlineTable:
		n.kind = object
		for it := v.Children(); it.Next(); {
			if !b.set(n, it.Node(), depth) {
				return nil, false
			}
		}
	case unstable.Bool:
		n.kind, n.text = boolean, string(v.Data)
	case unstable.Integer, unstable.Float:
		n.kind, n.text = number, string(v.Data)
	default: // texts and dates
		n.kind, n.text = text, string(v.Data)
	}
	return n, true
}
