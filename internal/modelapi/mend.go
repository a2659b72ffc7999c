package modelapi

import (
	"encoding/json"
	"slices"
	"strings"
)

// holds is what draft 2020-12 lets the members of a schema be: a text, a number, a flag,
// a list, an object.
var holds = kinds(map[string]string{
	"$ref $id $schema $comment $anchor title description format pattern contentEncoding contentMediaType":                            "t",
	"multipleOf maximum minimum exclusiveMaximum exclusiveMinimum maxLength minLength maxItems minItems maxProperties minProperties": "n",
	"maxContains minContains":                                         "n",
	"uniqueItems deprecated readOnly writeOnly":                       "f",
	"enum examples required anyOf oneOf allOf prefixItems":            "l",
	"properties patternProperties $defs definitions dependentSchemas": "o",
	"additionalProperties unevaluatedProperties propertyNames items additionalItems unevaluatedItems contains not if then else": "fo",
})

func kinds(table map[string]string) map[string]string {
	byKey := make(map[string]string)
	for keys, kinds := range table {
		for key := range words(keys) {
			byKey[key] = kinds
		}
	}
	return byKey
}

var knownTypes = words("object array string number integer boolean null")

const draftWhy = "it isn't valid by draft 2020-12 of JSON Schema, which the API checks"

// mend makes a schema valid by draft 2020-12, in place, and gives arrays the items that
// APIs ask for.
func (c *converter) mend(v any, path string) {
	node, ok := v.(map[string]any)
	if !ok {
		return
	}
	c.mendTuple(node, path)
	c.mendBounds(node, path)
	c.mendType(node, path)
	for _, key := range sorted(node) {
		if !mayHold(key, node[key]) {
			c.drop(node, path, draftWhy, key)
		}
	}
	if props, ok := node["properties"].(map[string]any); ok {
		for _, name := range sorted(props) {
			if _, ok := props[name].(map[string]any); !ok {
				props[name] = make(map[string]any)
				c.changed(join(join(path, "properties"), name), "replaced by {}", "it is no object")
			}
		}
	}
	if typeIs(node, "array") && node["items"] == nil && node["prefixItems"] == nil {
		node["items"] = make(map[string]any)
		c.changed(path, "items added", "the API asks for the items of an array")
	}
	eachSub(node, path, func(sub any, path string) any {
		c.mend(sub, path)
		return sub
	})
}

// mayHold reports whether a member of a schema may be what it is.
func mayHold(key string, value any) bool {
	allowed, ok := holds[key]
	if !ok {
		return true // what a draft doesn't know it ignores
	}
	list, _ := value.([]any)
	switch {
	case !strings.Contains(allowed, kindOf(value)):
		return false
	case key == "required":
		return len(texts(list)) == len(list)
	case allowed == "l" && key != "examples":
		return len(list) > 0
	default:
		return true
	}
}

func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "t"
	case json.Number:
		return "n"
	case bool:
		return "f"
	case []any:
		return "l"
	case map[string]any:
		return "o"
	default:
		return "null"
	}
}

// mendTuple replaces a list of items by what any of them allows: where they stand is
// said in a way that draft 2020-12 doesn't have any more.
func (c *converter) mendTuple(node map[string]any, path string) {
	list, ok := node["items"].([]any)
	if !ok {
		return
	}
	node["items"] = make(map[string]any)
	if len(list) > 0 {
		node["items"] = map[string]any{"anyOf": list}
	}
	delete(node, "additionalItems")
	c.changed(join(path, "items"), "a list of schemas was merged into one", draftWhy)
}

// mendBounds reads the bounds of draft 4, where exclusiveMinimum is a flag.
func (c *converter) mendBounds(node map[string]any, path string) {
	for _, pair := range [][2]string{{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}} {
		flag, ok := node[pair[0]].(bool)
		if !ok {
			continue
		}
		delete(node, pair[0])
		if bound, ok := node[pair[1]].(json.Number); ok && flag {
			node[pair[0]] = bound
			delete(node, pair[1])
		}
		c.changed(join(path, pair[0]), "written as draft 2020-12 has it", draftWhy)
	}
}

func (c *converter) mendType(node map[string]any, path string) {
	switch t := node["type"].(type) {
	case nil:
		delete(node, "type")
	case string:
		if !knownTypes[t] {
			c.drop(node, path, draftWhy, "type")
		}
	case []any:
		valid := texts(t)
		valid = slices.DeleteFunc(valid, func(s string) bool { return !knownTypes[s] })
		switch {
		case len(valid) == 0:
			c.drop(node, path, draftWhy, "type")
		case len(valid) < len(t):
			node["type"] = anys(valid)
			c.changed(join(path, "type"), "shortened to the types that there are", draftWhy)
		}
	default:
		c.drop(node, path, draftWhy, "type")
	}
}

func typeIs(node map[string]any, name string) bool {
	switch t := node["type"].(type) {
	case string:
		return t == name
	case []any:
		return slices.Contains(texts(t), name)
	default:
		return false
	}
}
