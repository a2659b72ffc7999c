package toolbox

import (
	"encoding/json"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/modelapi"
)

// API is a model API that a [ToolSet] can be written for.
type API string

// The APIs.
const (
	APIOpenAI    API = "OpenAI"    // and the many that speak as OpenAI's chat completions do
	APIAnthropic API = "Anthropic" // the messages API
	APIGemini    API = "Gemini"    // the Gemini API and Vertex AI
)

func (a API) rules() *modelapi.API {
	switch a {
	case APIAnthropic:
		return modelapi.Anthropic
	case APIGemini:
		return modelapi.Gemini
	default:
		return modelapi.OpenAI
	}
}

// Change is one thing that a model API is told otherwise than the server says it, since
// the API would refuse the whole request for it. [Box.Dispatch] takes new names of
// properties back.
type Change struct {
	Tool string // its Name
	Path string // a JSON Pointer into the schema of its arguments; empty for the tool itself
	What string // what was done, such as "renamed to filter_0c097d40"
	Why  string // the rule of the API
}

// OpenAI returns the tools as the "tools" of OpenAI's chat completions API and of the
// many that speak it. What that API refuses is written otherwise, see
// [ToolSet.Changes]. Every call makes new maps, which the caller may change.
func (s *ToolSet) OpenAI() []map[string]any { return s.convert(APIOpenAI) }

// Anthropic returns the tools as the "tools" of Anthropic's messages API, as
// [ToolSet.OpenAI] does.
func (s *ToolSet) Anthropic() []map[string]any { return s.convert(APIAnthropic) }

// Gemini returns the tools as the "functionDeclarations" of one of the "tools" of
// Gemini's API, as [ToolSet.OpenAI] does.
func (s *ToolSet) Gemini() []map[string]any { return s.convert(APIGemini) }

// Changes returns what is told to an API otherwise than servers say it, by tool. Tools
// beyond the number that the API takes are left out; with [Options.Search] they can be
// found all the same.
func (s *ToolSet) Changes(api API) (changes []Change) {
	for _, t := range s.offered(api) {
		_, c := t.convert(api)
		changes = append(changes, c...)
	}
	for _, t := range s.Tools[len(s.offered(api)):] {
		changes = append(changes, Change{
			Tool: t.Name, What: "left out", Why: "the API takes " + strconv.Itoa(api.rules().MaxTools) + " tools",
		})
	}
	return changes
}

// offered are the tools that an API takes. The search comes first: it finds the others.
func (s *ToolSet) offered(api API) []Tool {
	if most := api.rules().MaxTools; most > 0 && len(s.Tools) > most {
		return s.Tools[:most]
	}
	return s.Tools
}

func (s *ToolSet) convert(api API) []map[string]any {
	tools := s.offered(api)
	all := make([]map[string]any, len(tools))
	for i, t := range tools {
		all[i], _ = t.convert(api)
	}
	return all
}

// OpenAI is the tool as one of OpenAI's functions.
func (t Tool) OpenAI() map[string]any { return t.as(APIOpenAI) }

// Anthropic is the tool as one of Anthropic's.
func (t Tool) Anthropic() map[string]any { return t.as(APIAnthropic) }

// Gemini is the tool as one of Gemini's function declarations.
func (t Tool) Gemini() map[string]any { return t.as(APIGemini) }

func (t Tool) as(api API) map[string]any {
	m, _ := t.convert(api)
	return m
}

func (t Tool) convert(api API) (tool map[string]any, changes []Change) {
	rules := api.rules()
	schema, changed := rules.Schema(inputSchema(t.Spec))
	m := map[string]any{"name": t.Name}
	description, cut := rules.Description(describe(t.Spec))
	if description == "" && rules.NeedsDescription {
		description = t.Name
	}
	if description != "" {
		m["description"] = description
	}
	if cut != "" {
		changes = append(changes, Change{
			Tool: t.Name, What: cut, Why: "the API takes " + strconv.Itoa(rules.MaxDescription) + " characters",
		})
	}
	for _, c := range changed {
		changes = append(changes, Change{Tool: t.Name, Path: c.Path, What: c.What, Why: c.Why})
	}
	switch api {
	case APIAnthropic:
		m["input_schema"] = schema
		return m, changes
	case APIGemini:
		if props, _ := schema["properties"].(map[string]any); len(props) > 0 {
			m["parameters"] = schema // "for function with no parameters, this can be left unset"
		}
		return m, changes
	default:
		m["parameters"] = schema
		return map[string]any{"type": "function", "function": m}, changes
	}
}

// inputSchema is the schema of the tool's arguments as the server wrote it.
func inputSchema(t *mcp.Tool) json.RawMessage {
	if t.RawInputSchema != nil {
		return t.RawInputSchema
	}
	raw, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil // it didn't come from JSON
	}
	return raw
}
