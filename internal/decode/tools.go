package decode

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/jsonscan"
	"github.com/mcppool/mcppool/internal/rpc"
)

// anyObject is the schema of a tool that has none.
var anyObject = json.RawMessage(`{"type":"object"}`)

// tool is a tool but for its schemas, which stay as they are.
type tool struct {
	Name         string              `json:"name"`
	Title        string              `json:"title"`
	Description  string              `json:"description"`
	Annotations  *mcp.ToolAnnotation `json:"annotations"`
	DeferLoading bool                `json:"defer_loading"`
	Icons        []mcp.Icon          `json:"icons"`
	Execution    *mcp.ToolExecution  `json:"execution"`
	Meta         json.RawMessage     `json:"_meta"`
	InputSchema  json.RawMessage     `json:"inputSchema"`
	OutputSchema json.RawMessage     `json:"outputSchema"`
}

// Tools decodes the result of tools/list. Each tool has its schemas in
// RawInputSchema and RawOutputSchema, byte for byte but for what is mended in them,
// and InputSchema and OutputSchema stay empty: the two exclude each other.
func Tools(raw []byte) (*rpc.ToolList, error) {
	list := new(rpc.ToolList)
	entries, err := page(raw, "tools", &list.PaginatedResult)
	if err != nil {
		return nil, err
	}
	list.Tools = make([]mcp.Tool, 0, len(entries))
	for _, entry := range entries {
		t, wrong := toolOf(entry)
		if wrong != "" {
			list.Skipped = append(list.Skipped, rpc.SkippedTool{Name: t.Name, Reason: wrong})
			continue
		}
		list.Tools = append(list.Tools, t)
	}
	return list, nil
}

// toolOf decodes one tool, or returns what is wrong with it.
func toolOf(raw []byte) (out mcp.Tool, wrong string) {
	if string(raw) == "null" {
		return out, "it is null"
	}
	t, err := Into[tool](raw)
	if err != nil {
		return mcp.Tool{Name: nameOf(raw)}, reasonOf(err)
	}
	out = mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description,
		DeferLoading: t.DeferLoading, Icons: t.Icons, Execution: t.Execution,
	}
	if strings.TrimSpace(t.Name) == "" {
		return out, "it has no name"
	}
	if t.Annotations != nil {
		out.Annotations = *t.Annotations
	}
	if t.Meta != nil {
		if out.Meta, _ = Meta(t.Meta); out.Meta == nil && string(t.Meta) != "null" {
			return out, "its _meta is no object"
		}
	}
	if out.RawInputSchema, wrong = schema(t.InputSchema, "inputSchema"); wrong != "" {
		return out, wrong
	}
	if out.RawInputSchema == nil {
		out.RawInputSchema = anyObject
	}
	out.RawOutputSchema, wrong = schema(t.OutputSchema, "outputSchema")
	return out, wrong
}

// nameOf is the name of a tool that is otherwise unclear, or empty.
func nameOf(raw []byte) string {
	var t struct {
		Name any `json:"name"`
	}
	_ = json.Unmarshal(raw, &t) // whatever it is, it may have no name
	name, _ := t.Name.(string)
	return name
}

// schema returns the schema of a tool; nil for one that is missing, null, or true,
// which says as little.
func schema(raw json.RawMessage, member string) (out json.RawMessage, wrong string) {
	switch {
	case raw == nil, string(raw) == "null", string(raw) == "true":
		return nil, ""
	case isEmpty(raw, '['):
		return anyObject, ""
	case raw[0] != '{':
		return nil, member + " is no object"
	}
	return mendSchema(raw), ""
}

// What members of a schema hold.
var (
	schemasByName = words("properties patternProperties $defs definitions dependentSchemas")
	oneSchema     = words("additionalProperties unevaluatedProperties propertyNames items additionalItems unevaluatedItems contains not if then else")
	schemaList    = words("anyOf oneOf allOf prefixItems items")
)

func words(s string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(s) {
		set[w] = true
	}
	return set
}

// mendSchema returns a schema with {} for [] wherever only an object can be meant.
// Where there is nothing to mend it returns raw itself.
func mendSchema(raw []byte) []byte {
	if !bytes.Contains(raw, []byte("[")) {
		return raw
	}
	return rewrite(raw, func(key string, value []byte) []byte {
		switch {
		case schemasByName[key] && isEmpty(value, '['):
			return []byte("{}")
		case schemasByName[key] && value[0] == '{':
			return rewrite(value, func(_ string, value []byte) []byte { return mendSubschema(value) })
		case oneSchema[key] && key != "items" && isEmpty(value, '['):
			return []byte("{}")
		case oneSchema[key] && value[0] == '{':
			return mendSchema(value)
		case schemaList[key] && value[0] == '[':
			return rewriteList(value)
		default:
			return value
		}
	})
}

func mendSubschema(value []byte) []byte {
	switch {
	case isEmpty(value, '['):
		return []byte("{}")
	case value[0] == '{':
		return mendSchema(value)
	default:
		return value
	}
}

// rewrite returns an object with the values that change gives for its own, or the
// object itself if change changes nothing.
func rewrite(raw []byte, change func(key string, value []byte) []byte) []byte {
	var out []byte // nil as long as nothing has changed
	kept := 0      // raw[:kept] is in out
	s := jsonscan.New(raw)
	s.Enter('{')
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		value := s.Skip()
		if len(value) == 0 {
			return raw // it isn't JSON
		}
		if now := change(key.Decode(), value); &now[0] != &value[0] {
			end := s.Offset()
			out = append(append(out, raw[kept:end-len(value)]...), now...)
			kept = end
		}
	}
	if out == nil {
		return raw
	}
	return append(out, raw[kept:]...)
}

func rewriteList(raw []byte) []byte {
	var out []byte
	kept := 0
	s := jsonscan.New(raw)
	s.Enter('[')
	for s.Elem() {
		value := s.Skip()
		if len(value) == 0 {
			return raw
		}
		if now := mendSubschema(value); &now[0] != &value[0] {
			end := s.Offset()
			out = append(append(out, raw[kept:end-len(value)]...), now...)
			kept = end
		}
	}
	if out == nil {
		return raw
	}
	return append(out, raw[kept:]...)
}
