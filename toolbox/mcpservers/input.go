package mcpservers

import "errors"

// answer is what Options.Input returned, kept for the servers that share it.
type answer struct {
	value string
	err   error
}

// readPrompts keeps the inputs that VS Code's files declare.
func (p *parser) readPrompts() {
	p.prompts, p.answers = make(map[string]Prompt), make(map[string]answer)
	for _, path := range [][]string{{"inputs"}, {"mcp", "inputs"}} {
		inputs := p.root.get(path...)
		if inputs == nil || inputs.kind != list {
			continue
		}
		for _, in := range inputs.items {
			id := in.get("id").str()
			if id == "" {
				p.warn(in.line, "inputs", `has no "id" and no effect`)
				continue
			}
			p.prompts[id] = promptOf(id, in)
		}
	}
}

func promptOf(id string, n *node) Prompt {
	in := Prompt{ID: id, Description: n.get("description").str(), Default: n.get("default").str(), Password: n.get("password").isTrue()}
	if options := n.get("options"); options != nil {
		for _, o := range options.items {
			choice := o.str()
			if choice == "" {
				choice = o.get("value").str()
			}
			in.Choices = append(in.Choices, choice)
		}
	}
	return in
}

var errNoInput = errors.New("no value")

// input is the value of an input, asked for once a file.
func (p *parser) input(id string) (string, error) {
	if a, asked := p.answers[id]; asked {
		return a.value, a.err
	}
	prompt, declared := p.prompts[id]
	prompt.ID = id
	var a answer
	switch {
	case p.opts.Input != nil:
		a.value, a.err = p.opts.Input(prompt)
	case declared && prompt.Default != "":
		a.value = prompt.Default
	default:
		a.err = errNoInput
	}
	p.answers[id] = a
	return a.value, a.err
}
