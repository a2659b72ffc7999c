package modelapi_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/mcppool/mcppool/internal/modelapi"
)

// The rules of the APIs, written down a second time and apart from the code that makes
// schemas obey them.

var (
	anthropicKey = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	geminiKey    = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`)
)

// broken returns which rule a schema breaks, or nothing.
func broken(api *modelapi.API, schema map[string]any) string {
	b, err := json.Marshal(schema)
	if err != nil {
		return err.Error()
	}
	var plain map[string]any
	if err := json.Unmarshal(b, &plain); err != nil {
		return err.Error()
	}
	if plain["type"] != "object" {
		return fmt.Sprintf("the type is %v", plain["type"])
	}
	if _, ok := plain["properties"].(map[string]any); !ok {
		return "no properties"
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf", "enum", "const", "not", "$ref"} {
		if _, ok := plain[key]; ok {
			return key + " at the top level"
		}
	}
	switch api {
	case modelapi.Gemini:
		return brokenGemini(plain, "")
	case modelapi.Anthropic:
		return brokenDraft(plain, "", anthropicKey)
	default:
		return brokenDraft(plain, "", regexp.MustCompile(""))
	}
}

// brokenDraft looks at any schema but Gemini's.
func brokenDraft(node map[string]any, path string, key *regexp.Regexp) string {
	if node["type"] == "array" && node["items"] == nil && node["prefixItems"] == nil {
		return path + ": an array without items"
	}
	if _, ok := node["items"].([]any); ok {
		return path + ": a list of items"
	}
	for _, k := range []string{"exclusiveMinimum", "exclusiveMaximum", "required"} {
		if _, ok := node[k].(bool); ok {
			return path + ": " + k + " is a flag"
		}
	}
	for k, v := range node {
		switch k {
		case "properties", "$defs", "definitions", "patternProperties":
			m, ok := v.(map[string]any)
			if !ok {
				return path + ": " + k + " is no object"
			}
			for name, sub := range m {
				if k == "properties" && !key.MatchString(name) {
					return path + ": the name " + name
				}
				if s, ok := sub.(map[string]any); ok {
					if wrong := brokenDraft(s, path+"/"+k+"/"+name, key); wrong != "" {
						return wrong
					}
				} else if k == "properties" {
					return path + ": no schema for " + name
				}
			}
		case "anyOf", "oneOf", "allOf":
			list, _ := v.([]any)
			if len(list) == 0 {
				return path + ": empty " + k
			}
			for _, sub := range list {
				if s, ok := sub.(map[string]any); ok {
					if wrong := brokenDraft(s, path+"/"+k, key); wrong != "" {
						return wrong
					}
				}
			}
		case "items", "additionalProperties", "not":
			if s, ok := v.(map[string]any); ok {
				if wrong := brokenDraft(s, path+"/"+k, key); wrong != "" {
					return wrong
				}
			}
		}
	}
	return ""
}

var geminiMembers = []string{
	"type", "format", "title", "description", "nullable", "default", "items", "minItems", "maxItems", "enum", "properties",
	"required", "minProperties", "maxProperties", "minimum", "maximum", "minLength", "maxLength", "pattern", "anyOf",
}

func brokenGemini(node map[string]any, path string) string {
	if list, ok := node["anyOf"].([]any); ok {
		if len(node) > 1 || len(list) == 0 {
			return path + ": anyOf is empty or not alone"
		}
		for _, sub := range list {
			if wrong := brokenGemini(sub.(map[string]any), path+"/anyOf"); wrong != "" {
				return wrong
			}
		}
		return ""
	}
	for key := range node {
		if !slices.Contains(geminiMembers, key) {
			return path + ": member " + key
		}
	}
	kind, _ := node["type"].(string)
	if !slices.Contains([]string{"string", "number", "integer", "boolean", "array", "object"}, kind) {
		return path + ": type " + fmt.Sprint(node["type"])
	}
	if f, ok := node["format"].(string); ok {
		may := map[string][]string{"string": {"enum", "date-time"}, "number": {"float", "double"}, "integer": {"int32", "int64"}}
		if !slices.Contains(may[kind], f) {
			return path + ": format " + f
		}
	}
	if enum, ok := node["enum"].([]any); ok {
		for _, v := range enum {
			if s, ok := v.(string); !ok || s == "" {
				return path + ": an enum of what is no text"
			}
		}
	}
	props, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	for _, name := range required {
		if _, ok := props[name.(string)]; !ok {
			return path + ": requires what it doesn't have"
		}
	}
	for name, sub := range props {
		if !geminiKey.MatchString(name) {
			return path + ": the name " + name
		}
		if wrong := brokenGemini(sub.(map[string]any), path+"/"+name); wrong != "" {
			return wrong
		}
	}
	items, ok := node["items"].(map[string]any)
	if kind == "array" && !ok {
		return path + ": no items"
	}
	if ok {
		return brokenGemini(items, path+"/items")
	}
	return ""
}
