package toolbox

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// OpenAI gives the tools as the "tools" of OpenAI's chat completions API and of
// the many that speak it. Every call makes new maps, which the caller may
// change.
func (s *ToolSet) OpenAI() []map[string]any { return convert(s.Tools, Tool.OpenAI) }

// Anthropic gives the tools as the "tools" of Anthropic's messages API. Every
// call makes new maps, which the caller may change.
func (s *ToolSet) Anthropic() []map[string]any { return convert(s.Tools, Tool.Anthropic) }

func convert(tools []Tool, one func(Tool) map[string]any) []map[string]any {
	all := make([]map[string]any, len(tools))
	for i, t := range tools {
		all[i] = one(t)
	}
	return all
}

// OpenAI is the tool as one of OpenAI's functions.
func (t Tool) OpenAI() map[string]any {
	f := t.described()
	f["parameters"] = inputSchema(t.Spec)
	return map[string]any{"type": "function", "function": f}
}

// Anthropic is the tool as one of Anthropic's.
func (t Tool) Anthropic() map[string]any {
	f := t.described()
	f["input_schema"] = inputSchema(t.Spec)
	return f
}

func (t Tool) described() map[string]any {
	m := map[string]any{"name": t.Name}
	switch {
	case t.Spec.Description != "":
		m["description"] = t.Spec.Description
	case t.Spec.Title != "":
		m["description"] = t.Spec.Title
	}
	return m
}

// inputSchema is the schema of the tool's arguments. Model APIs take only that
// of an object with properties, so what a server left out is filled in.
func inputSchema(t *mcp.Tool) map[string]any {
	raw := t.RawInputSchema
	if raw == nil {
		raw, _ = json.Marshal(t.InputSchema) // fails only for schemas that didn't come from JSON
	}
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil || schema == nil {
		schema = make(map[string]any)
	}
	if kind, _ := schema["type"].(string); kind == "" {
		schema["type"] = "object"
	}
	if schema["properties"] == nil {
		schema["properties"] = make(map[string]any)
	}
	if r, ok := schema["required"].([]any); ok && len(r) == 0 {
		delete(schema, "required") // draft 4 of JSON Schema refuses an empty one
	}
	return schema
}
