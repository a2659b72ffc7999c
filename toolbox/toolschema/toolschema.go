// Package toolschema checks the arguments of a call against the tool's schema,
// for toolbox.Options.Validate. It is a module of its own, so that only those
// who use it get a JSON Schema library.
package toolschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Validator checks arguments. Its zero value is ready, and it is safe for
// concurrent use.
type Validator struct {
	mu       sync.Mutex // protects the field below
	compiled map[string]*jsonschema.Schema
}

// maxCompiled bounds the schemas that are kept; beyond it all are forgotten.
const maxCompiled = 4096

// Validate says in one line for the model what is wrong with args. It is nil as well when the tool's schema can't be used: that is the
// server's fault, and the server checks too.
func (v *Validator) Validate(tool *mcp.Tool, args json.RawMessage) error {
	schema := v.schema(tool)
	if schema == nil {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return errors.New("not JSON")
	}
	err = schema.Validate(value)
	if err == nil {
		return nil
	}
	return errors.New(oneLine(err.Error()))
}

// oneLine joins the faults in one order: the library goes through a map. It
// writes a line for each, and indented ones below it for what makes it up.
func oneLine(text string) string {
	lines := strings.Split(text, "\n")
	lines = lines[1:] // it names the schema, which the model doesn't know
	var faults []string
	for _, line := range lines {
		fault, nested := strings.CutPrefix(line, " ")
		fault = strings.TrimPrefix(strings.TrimLeft(fault, " "), "- ")
		fault = strings.TrimPrefix(fault, "at '': ")
		if nested && len(faults) > 0 {
			faults[len(faults)-1] += "; " + fault
			continue
		}
		faults = append(faults, fault)
	}
	slices.Sort(faults)
	return strings.Join(faults, "; ")
}

// schema compiles the tool's schema; nil when that fails.
func (v *Validator) schema(tool *mcp.Tool) *jsonschema.Schema {
	text := []byte(tool.RawInputSchema)
	if text == nil {
		var err error
		if text, err = json.Marshal(tool.InputSchema); err != nil {
			return nil
		}
	}
	v.mu.Lock()
	schema, known := v.compiled[string(text)]
	v.mu.Unlock()
	if known {
		return schema
	}
	schema = compile(text)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.compiled == nil || len(v.compiled) >= maxCompiled {
		v.compiled = make(map[string]*jsonschema.Schema)
	}
	v.compiled[string(text)] = schema
	return schema
}

const schemaURL = "tool:schema"

func compile(text []byte) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if c.AddResource(schemaURL, doc) != nil {
		return nil
	}
	schema, err := c.Compile(schemaURL)
	if err != nil {
		return nil
	}
	return schema
}

// noLoader refuses references to elsewhere: a schema comes from a server, which
// must not make the host read files or fetch URLs.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("references to elsewhere aren't followed")
}
