package mcpservers

import (
	"errors"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads the first document of data.
func parseYAML(data []byte) (*node, *Error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, yamlError(err)
	}
	if doc.Kind == 0 {
		return nil, nil
	}
	p := yamlParser{done: make(map[*yaml.Node]*node), weights: make(map[*node]int), budget: maxYAMLWeight}
	root, err := p.value(&doc, 0)
	if err != nil {
		return nil, &Error{Place: Place{Line: p.line}, Reason: "isn't YAML that can be read here: " + err.Error()}
	}
	if root.kind == null {
		return nil, nil
	}
	return root, nil
}

// maxYAMLWeight bounds what aliases and merge keys repeat, as weigh counts it: a
// text of n bytes could ask for 2ⁿ values.
const maxYAMLWeight = 1 << 20

var yamlLine = regexp.MustCompile(`line (\d+)`)

// yamlError keeps the parser's line but not its words, which may quote a value
// that begins with one of YAML's own characters.
func yamlError(err error) *Error {
	e := &Error{Reason: "isn't YAML: a text that begins with one of * & ! % @ ` { [ or holds \": \" or \" #\" needs quotes, and lines are indented with blanks"}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
	}
	return e
}

type yamlParser struct {
	done    map[*yaml.Node]*node // nil while it is being read
	weights map[*node]int        // of all that was read
	budget  int                  // of weight that may yet be repeated
	line    int                  // of what is being read
}

var errTooMuch = errors.New("aliases (*) repeat too much")

// weigh sums up what n would be without aliases: a value each, and its text.
func (p *yamlParser) weigh(n *node) {
	w := 1 + len(n.text)/32
	for _, item := range n.items {
		w += p.weights[item]
	}
	for _, m := range n.members {
		w += p.weights[m.value]
	}
	p.weights[n] = w
}

// repeat takes what an alias repeats from the budget.
func (p *yamlParser) repeat(n *node) error {
	p.budget -= p.weights[n]
	if p.budget < 0 {
		return errTooMuch
	}
	return nil
}

// value reads a node once, however many aliases there are of it.
func (p *yamlParser) value(y *yaml.Node, depth int) (*node, error) {
	if n, seen := p.done[y]; seen {
		if n == nil {
			return nil, errors.New("an alias (*) stands inside its own anchor (&)")
		}
		return n, nil
	}
	p.line = y.Line
	if depth > maxDepth {
		return nil, errTooDeep
	}
	p.done[y] = nil
	n, err := p.read(y, depth)
	if err != nil {
		return nil, err
	}
	p.done[y] = n
	if y.Kind != yaml.AliasNode && y.Kind != yaml.DocumentNode {
		p.weigh(n)
	}
	return n, nil
}

func (p *yamlParser) read(y *yaml.Node, depth int) (*node, error) {
	n := &node{line: y.Line}
	switch y.Kind {
	case yaml.DocumentNode:
		return p.value(y.Content[0], depth)
	case yaml.AliasNode:
		target, err := p.value(y.Alias, depth+1)
		if err != nil {
			return nil, err
		}
		return target, p.repeat(target)
	case yaml.SequenceNode:
		n.kind = list
		for _, c := range y.Content {
			item, err := p.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
	case yaml.MappingNode:
		n.kind = object
		return n, p.members(n, y, depth)
	default:
		n.kind, n.text = scalar(y)
	}
	return n, nil
}

func scalar(y *yaml.Node) (kind, string) {
	switch y.ShortTag() {
	case "!!null":
		return null, ""
	case "!!bool":
		if y.Value == "true" || y.Value == "True" || y.Value == "TRUE" {
			return boolean, "true"
		}
		return boolean, "false"
	case "!!int", "!!float":
		return number, y.Value
	}
	return text, y.Value
}

func (p *yamlParser) members(n *node, y *yaml.Node, depth int) error {
	var merged []member
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		value, err := p.value(y.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		if key.ShortTag() == "!!merge" {
			if merged, err = p.merge(merged, value); err != nil {
				return err
			}
			continue
		}
		p.line = key.Line
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return errors.New("a name is a list or an object")
		}
		n.members = append(n.members, member{name: key.Value, line: y.Content[i].Line, value: value})
	}
	own := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		own[m.name] = true
	}
	for _, m := range merged {
		if !own[m.name] { // what stands in the object itself wins, then what was merged first
			own[m.name] = true
			n.members = append(n.members, m)
		}
	}
	return nil
}

// merge appends the members that "<<" asks for.
func (p *yamlParser) merge(merged []member, value *node) ([]member, error) {
	from := []*node{value}
	if value.kind == list {
		from = value.items
	}
	for _, n := range from {
		if n.kind != object {
			return nil, errors.New(`"<<" takes an object or a list of objects`)
		}
		if err := p.repeat(n); err != nil {
			return nil, err
		}
		merged = append(merged, n.members...)
	}
	return merged, nil
}
