package mcpservers

// kind is what a node holds.
type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

// node is a value of a file of any format, with its line.
type node struct {
	kind    kind
	text    string   // of a text; of a boolean or number as it is written
	items   []*node  // of a list
	members []member // of an object, in the file's order; names may come twice
	line    int
}

// member is a named value of an object.
type member struct {
	name  string
	line  int
	value *node
}

// maxDepth bounds how deep values are nested. Hosts' files stay below ten.
const maxDepth = 64

// get returns the last member of a name, as JSON's parsers do, or nil.
func (n *node) get(path ...string) *node {
	for _, name := range path {
		if n == nil || n.kind != object {
			return nil
		}
		var found *node
		for i := range n.members {
			if n.members[i].name == name {
				found = n.members[i].value
			}
		}
		n = found
	}
	return n
}

// str is the text of a text, and empty for all else.
func (n *node) str() string {
	if n == nil || n.kind != text {
		return ""
	}
	return n.text
}

// isTrue reports whether n is the boolean true.
func (n *node) isTrue() bool { return n != nil && n.kind == boolean && n.text == "true" }

// texts returns the texts of a list, and whether it is a list of nothing else.
func (n *node) texts() ([]string, bool) {
	if n == nil || n.kind != list {
		return nil, false
	}
	texts := make([]string, 0, len(n.items))
	for _, item := range n.items {
		if item.kind != text {
			return nil, false
		}
		texts = append(texts, item.text)
	}
	return texts, true
}
