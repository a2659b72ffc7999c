package toolschema_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/toolbox"
	"github.com/mcppool/mcppool/toolbox/toolschema"
)

var _ = toolbox.Options{Validate: new(toolschema.Validator).Validate}

func TestArgumentsAreCheckedAgainstTheSchema(t *testing.T) {
	var v toolschema.Validator
	search := mcp.NewTool("search", mcp.WithString("q", mcp.Required()), mcp.WithNumber("limit", mcp.Max(10)))
	raw := func(schema string) mcp.Tool { return mcp.Tool{Name: "t", RawInputSchema: json.RawMessage(schema)} }
	for _, c := range []struct {
		tool mcp.Tool
		args string
		want string
	}{
		{search, `{"q":"x"}`, ""},
		{search, `{"q":"x","limit":3,"more":1}`, ""},
		{search, `{}`, "missing property 'q'"},
		{search, `{"q":1,"limit":11}`, "at '/limit': maximum: got 11, want 10; at '/q': got number, want string"},
		{raw(`{"type":"object","properties":{"a":{"const":9007199254740993}}}`), `{"a":9007199254740993}`, ""},
		{raw(`{"type":"object","additionalProperties":false}`), `{"a":1}`, "additional properties 'a' not allowed"},
		{raw(`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"null"}}}`), `{"a":1}`, "at '/a': got number, want null"},
		{raw(`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["b"]}`), `{"a":1}`,
			"at '/a': 'anyOf' failed; at '/a': got number, want string; at '/a': got number, want null; missing property 'b'"},
		// What can't be used is the server's business.
		{raw(`{"type":12}`), `{}`, ""},
		{raw(`{"$ref":"file:///etc/hostname"}`), `{}`, ""},
		{raw(`{"$ref":"https://example.com/x"}`), `{}`, ""},
		{raw(`nonsense`), `{}`, ""},
	} {
		for range 2 { // compiled, and kept
			err := v.Validate(&c.tool, json.RawMessage(c.args))
			if c.want == "" {
				require.NoError(t, err)
				continue
			}
			require.EqualError(t, err, c.want)
		}
	}
}

func TestAValidatorIsSafeForConcurrentUse(t *testing.T) {
	var v toolschema.Validator
	tool := mcp.NewTool("t", mcp.WithString("q", mcp.Required()))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if v.Validate(&tool, json.RawMessage(`{"q":1}`)) == nil {
					t.Error("a fault wasn't seen")
				}
			}
		})
	}
	wg.Wait()
}
