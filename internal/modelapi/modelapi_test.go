package modelapi_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/modelapi"
)

var apis = []*modelapi.API{modelapi.OpenAI, modelapi.Anthropic, modelapi.Gemini}

func convert(t testing.TB, api *modelapi.API, raw string) (string, []modelapi.Change) {
	t.Helper()
	schema, changes := api.Schema(json.RawMessage(raw))
	require.Empty(t, broken(api, schema), "%s of %s: %v", api.Name, raw, schema)
	b, err := json.Marshal(schema)
	require.NoError(t, err)
	return string(b), changes
}

func TestEverySchemaOfARealServerObeysTheRulesOfEveryAPI(t *testing.T) {
	files, err := filepath.Glob("testdata/servers/*.json")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 10)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var list struct {
			Tools []struct {
				Name, Description string
				InputSchema       json.RawMessage
			}
		}
		require.NoError(t, json.Unmarshal(raw, &list), file)
		require.NotEmpty(t, list.Tools, file)
		for _, tool := range list.Tools {
			for _, api := range apis {
				schema, _ := api.Schema(tool.InputSchema)
				require.Empty(t, broken(api, schema), "%s, %s, %s", file, tool.Name, api.Name)
				text, _ := api.Description(tool.Description)
				require.LessOrEqual(t, len([]rune(text)), 1024+len(tool.Description)*(1-min(api.MaxDescription, 1)))
			}
		}
	}
}

func TestASchemaThatAnAPITakesIsNotChanged(t *testing.T) {
	const schema = `{"additionalProperties":false,"properties":{"big":{"maximum":12345678901234567890123,"type":"integer"},"q":{"enum":["a"],"type":"string"}},"required":["q"],"type":"object"}`
	for _, api := range apis[:2] {
		got, changes := convert(t, api, schema)
		require.Equal(t, schema, got)
		require.Empty(t, changes)
	}
}

func TestSchemasAreMadeWhatTheAPITakes(t *testing.T) {
	for _, c := range []struct{ name, raw, openAI, gemini string }{
		{
			"nothing", `true`,
			`{"type":"object","properties":{}}`, `{"type":"object","properties":{}}`,
		},
		{
			"the root is a choice of objects",
			`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"string"}}}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`,
		},
		{
			"variants are told apart by a value",
			`{"type":"object","oneOf":[{"properties":{"k":{"const":"x"},"a":{"type":"string"}},"required":["k","a"]},{"properties":{"k":{"const":"y"}},"required":["k"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"k":{"enum":["x","y"]}},"required":["k"]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"k":{"type":"string","enum":["x","y"]}},"required":["k"]}`,
		},
		{
			"the root is a reference",
			`{"$ref":"#/$defs/Args","$defs":{"Args":{"type":"object","properties":{"n":{"$ref":"#/$defs/Node"}}},"Node":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"}}}}}`,
			`{"type":"object","properties":{"n":{"$ref":"#/$defs/Node"}},"$defs":{"Args":{"type":"object","properties":{"n":{"$ref":"#/$defs/Node"}}},"Node":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"}}}}}`,
			`{"type":"object","properties":{"n":{"type":"object","properties":{"next":{"type":"string"}}}}}`,
		},
		{
			"all of several",
			`{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"array"}},"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{}}},"required":["a","b"]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"string"}}},"required":["a","b"]}`,
		},
		{
			"the root may be null", `{"type":["object","null"],"properties":{"a":{"type":["string","null"],"format":"uri"}}}`,
			`{"type":"object","properties":{"a":{"type":["string","null"],"format":"uri"}}}`,
			`{"type":"object","properties":{"a":{"type":"string","nullable":true}}}`,
		},
		{
			"older drafts", `{"type":"object","properties":{"a":{"type":"any"},"n":{"type":"number","minimum":0,"exclusiveMinimum":true},"t":{"type":"array","items":[{"type":"string"},{"type":"number"}]},"r":{"type":"string","required":true}}}`,
			`{"type":"object","properties":{"a":{},"n":{"type":"number","exclusiveMinimum":0},"t":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"number"}]}},"r":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"number","minimum":0},"t":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"number"}]}},"r":{"type":"string"}}}`,
		},
		{
			"an enum of numbers", `{"type":"object","properties":{"n":{"type":"integer","enum":[1,2],"description":"How many."}}}`,
			`{"type":"object","properties":{"n":{"type":"integer","enum":[1,2],"description":"How many."}}}`,
			`{"type":"object","properties":{"n":{"type":"integer","description":"How many. One of: 1, 2."}}}`,
		},
		{
			"a choice with a description", `{"type":"object","properties":{"v":{"description":"V.","anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}}}`,
			`{"type":"object","properties":{"v":{"description":"V.","anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}}}`,
			`{"type":"object","properties":{"v":{"anyOf":[{"type":"string","description":"V.","nullable":true},{"type":"integer","description":"V.","nullable":true}]}}}`,
		},
		{
			"a reference into what was merged",
			`{"anyOf":[{"properties":{"a":{"type":"string","maxLength":3}}},{"properties":{"b":{"$ref":"#/anyOf/0/properties/a"}}}]}`,
			`{"type":"object","properties":{"a":{"type":"string","maxLength":3},"b":{"type":"string","maxLength":3}}}`,
			`{"type":"object","properties":{"a":{"type":"string","maxLength":3},"b":{"type":"string","maxLength":3}}}`,
		},
	} {
		openAI, _ := convert(t, modelapi.OpenAI, c.raw)
		require.JSONEq(t, c.openAI, openAI, c.name)
		gemini, _ := convert(t, modelapi.Gemini, c.raw)
		require.JSONEq(t, c.gemini, gemini, c.name)
	}
}

func TestNamesThatAnAPIRefusesAreReplacedAndRestored(t *testing.T) {
	const schema = `{"type":"object","properties":{"$filter":{"type":"string"},"body[name]":{"type":"object","properties":{"@id":{"type":"string"},"ok":{}}},"a.b":{"$ref":"#/properties/$filter"},"x_0123abcd":{}},"required":["$filter"]}`
	got, changes := convert(t, modelapi.Anthropic, schema)
	require.JSONEq(t, `{"type":"object","properties":{
		"filter_0c097d40":{"type":"string"},
		"body_name_69902ca2":{"type":"object","properties":{"id_c1664cb8":{"type":"string"},"ok":{}}},
		"a.b":{"type":"string"},"x_0123abcd_b90976ff":{}},"required":["filter_0c097d40"]}`, got)
	require.Len(t, changes, 4)
	require.Equal(t, modelapi.Change{
		Path: "/properties/$filter", What: "renamed to filter_0c097d40",
		Why: "the API takes only names of 1 to 64 letters, digits, _, . and -",
	}, changes[1])
	args := `{ "filter_0c097d40" : "filter_0c097d40", "body_name_69902ca2": {"id_c1664cb8": 1.10}, "a.b": "\"" }`
	require.True(t, modelapi.HasRenamed(json.RawMessage(args)))
	require.Equal(t, `{ "$filter" : "filter_0c097d40", "body[name]": {"@id": 1.10}, "a.b": "\"" }`,
		string(modelapi.Restore(json.RawMessage(args), json.RawMessage(schema))))
	require.False(t, modelapi.HasRenamed(json.RawMessage(`{"a":"filter_0c097d40","b":["x_0123abcd"]}`)))
}

func TestASchemaThatRefersToItselfManyTimesStaysSmall(t *testing.T) {
	refs := strings.Repeat(`{"$ref":"#"},`, 50) + `{}`
	for _, raw := range []string{
		`{"allOf":[` + refs + `],"anyOf":[` + refs + `]}`,
		`{"properties":{"a":{"items":{"anyOf":[` + strings.Repeat(`{"$ref":"#/$defs/b"},`, 50) + `{}]}}},"$defs":{"b":{"oneOf":[` + strings.Repeat(`{"$ref":"#/$defs/c"},`, 50) + `{}]},"c":{"oneOf":[` + refs + `]}}}`,
	} {
		for _, api := range apis {
			got, _ := convert(t, api, raw)
			require.Less(t, len(got), 10_000_000)
		}
	}
}

func TestALongDescriptionIsCutAtACharacter(t *testing.T) {
	long := strings.Repeat("é", 1025)
	got, what := modelapi.OpenAI.Description(long)
	require.Len(t, []rune(got), 1024)
	require.NotEmpty(t, what)
	got, what = modelapi.OpenAI.Description(long[2:])
	require.Equal(t, long[2:], got)
	require.Empty(t, what)
	got, _ = modelapi.Anthropic.Description(long)
	require.Equal(t, long, got)
}

// tree draws an object with properties of odd names, and values for them under the names
// that each schema has.
func tree(t *rapid.T, depth int) map[string]any {
	props := make(map[string]any)
	for range rapid.IntRange(0, 4).Draw(t, "properties") {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z$.\[]{0,80}(_[0-9a-f]{8})?`)).Draw(t, "name")
		if depth < 3 && rapid.Bool().Draw(t, "nested") {
			props[name] = map[string]any{"type": "object", "properties": tree(t, depth+1)}
		} else {
			props[name] = map[string]any{"type": "string", "title": name}
		}
	}
	return props
}

// fill returns arguments for a schema; a leaf's value is its title, the first name of
// its property.
func fill(props map[string]any) map[string]any {
	args := make(map[string]any)
	for name, s := range props {
		if sub, ok := s.(map[string]any)["properties"].(map[string]any); ok {
			args[name] = fill(sub)
		} else {
			args[name] = s.(map[string]any)["title"]
		}
	}
	return args
}

func TestRenamingAndRestoringAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		props := tree(t, 0)
		raw, err := json.Marshal(map[string]any{"type": "object", "properties": props})
		require.NoError(t, err)
		want, err := json.Marshal(fill(props))
		require.NoError(t, err)
		for _, api := range apis {
			schema, _ := api.Schema(raw)
			require.Empty(t, broken(api, schema))
			args, err := json.Marshal(fill(schema["properties"].(map[string]any)))
			require.NoError(t, err)
			if modelapi.HasRenamed(args) {
				args = modelapi.Restore(args, raw)
			}
			require.JSONEq(t, string(want), string(args))
		}
	})
}

func FuzzSchema(f *testing.F) {
	f.Add(`{"anyOf":[{"$ref":"#/anyOf/0"},{"allOf":[{"type":["object","null"],"items":[true]}]}],"properties":{"$":{"$ref":"#"}}}`)
	f.Add(`{"type":"object","properties":{"a":{"enum":[1,"",null],"exclusiveMinimum":true,"items":[],"oneOf":[]}},"required":[1]}`)
	f.Fuzz(func(t *testing.T, raw string) {
		if !json.Valid([]byte(raw)) {
			t.Skip()
		}
		for _, api := range apis {
			convert(t, api, raw)
		}
		if raw[0] == '{' {
			modelapi.Restore(json.RawMessage(raw), json.RawMessage(raw))
		}
	})
}
