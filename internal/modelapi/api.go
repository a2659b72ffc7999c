// Package modelapi turns the schema of a tool's arguments into one that a model API
// takes, and arguments that a model wrote for it back into those that the tool takes.
//
// What an API refuses it refuses with the whole request, the tools of all other
// servers included, so a schema is changed rather than passed on. Each change is
// reported.
package modelapi

import (
	"unicode/utf8"
)

// API is what one model API takes. Rules that aren't in its documentation are in the
// error messages that it answers with, which are quoted here.
type API struct {
	// Name is that of its vendor, for texts.
	Name string
	// MaxTools is how many tools one request may have; 0 where no limit is known.
	MaxTools int
	// MaxDescription is how long a tool's description may be, in characters; 0 where no
	// limit is known.
	MaxDescription int
	// NeedsDescription says that a tool must have one.
	NeedsDescription bool

	property func(name string) bool // reports whether a property may be called so
	names    string                 // the same in words
	subset   bool                   // schemas are of Gemini's subset of OpenAPI 3.0
}

var (
	// OpenAI is OpenAI's function calling (platform.openai.com/docs/api-reference/chat).
	//   - "Expected an array with maximum length 128"
	//   - description: "Expected a string with maximum length 1024"
	//   - "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/
	//     'const'/'not' at the top level"
	//   - "array schema missing items", also within the schema
	//   - the schema is valid by draft 2020-12 of JSON Schema
	OpenAI = &API{
		Name: "OpenAI", MaxTools: 128, MaxDescription: 1024,
		property: func(string) bool { return true },
	}
	// Anthropic is Anthropic's tool use (docs.anthropic.com/en/api/messages).
	//   - "input_schema does not support oneOf, allOf, or anyOf at the top level"
	//   - "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
	//   - "It must match JSON Schema draft 2020-12"
	Anthropic = &API{
		Name: "Anthropic", property: isAnthropicName,
		names: "only names of 1 to 64 letters, digits, _, . and -",
	}
	// Gemini is the parameters of Gemini's function declarations, as the Gemini API
	// (ai.google.dev/api/caching#Schema) and Vertex AI (FunctionDeclaration and Schema in
	// cloud.google.com/vertex-ai/docs/reference/rest/v1beta1) both take them.
	//   - a schema has these members and no others: type, format, title, description,
	//     nullable, default, items, minItems, maxItems, enum, properties, required,
	//     minProperties, maxProperties, minimum, maximum, minLength, maxLength, pattern, anyOf
	//   - a parameter's name begins with a letter or _ and has at most 64 letters, digits
	//     and _
	//   - enum holds texts; format is "enum" or "date-time" for a text, "float" or "double"
	//     for a number, "int32" or "int64" for an integer
	//   - "schema didn't specify the schema type field"
	//   - "When using any_of, it must be the only field set"
	//   - items are required for an array, and what is required must be a property
	//   - "Maximum 128 function declarations can be provided"
	Gemini = &API{
		Name: "Gemini", MaxTools: 128, NeedsDescription: true,
		property: isIdentifier, names: "only names of 1 to 64 letters, digits and _ that don't begin with a digit",
		subset: true,
	}
)

// Change is one thing that was changed in a schema.
type Change struct {
	Path string // a JSON Pointer into the schema
	What string
	Why  string
}

// Description returns a tool's description as the API takes it; what is empty unless
// it was cut.
func (a *API) Description(s string) (out, what string) {
	if a.MaxDescription == 0 || utf8.RuneCountInString(s) <= a.MaxDescription {
		return s, ""
	}
	n := 0
	for i := range s {
		if n++; n == a.MaxDescription {
			return s[:i] + "…", "the description was cut"
		}
	}
	return s, ""
}

func isAnthropicName(s string) bool {
	return isName(s, func(c byte) bool { return isWord(c) || c == '.' || c == '-' })
}

func isIdentifier(s string) bool {
	return isName(s, isWord) && !('0' <= s[0] && s[0] <= '9')
}

func isName(s string, may func(byte) bool) bool {
	for i := range len(s) {
		if !may(s[i]) {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= maxName
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}
