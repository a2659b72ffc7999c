package modelapi

import (
	"encoding/json"
	"slices"
)

// The members of a schema by what draft 2020-12 lets them hold.
var (
	holdsText   = words("$ref $id $schema $comment $anchor title description format pattern contentEncoding contentMediaType")
	holdsNumber = words("multipleOf maximum minimum exclusiveMaximum exclusiveMinimum maxLength minLength maxItems minItems maxProperties minProperties maxContains minContains")
	holdsList   = words("enum examples")
	holdsFlag   = words("uniqueItems deprecated readOnly writeOnly")
	knownTypes  = words("object array string number integer boolean null")
)

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

func mayHold(key string, value any) bool {
	switch value.(type) {
	case string:
		return !holdsNumber[key] && !holdsList[key] && !holdsFlag[key] && !byName[key] && !single[key] && !inList[key] && key != "required"
	case json.Number:
		return !holdsText[key] && !holdsList[key] && !holdsFlag[key] && !byName[key] && !single[key] && !inList[key] && key != "required"
	case bool:
		return !holdsText[key] && !holdsNumber[key] && !holdsList[key] && !byName[key] && (single[key] || !inList[key]) && key != "required"
	case []any:
		if key == "required" {
			return len(texts(value)) == len(value.([]any))
		}
		empty := len(value.([]any)) == 0 && (key == "enum" || inList[key])
		return !empty && !holdsText[key] && !holdsNumber[key] && !holdsFlag[key] && !byName[key] && (inList[key] || !single[key])
	case map[string]any:
		return !holdsText[key] && !holdsNumber[key] && !holdsList[key] && !holdsFlag[key] && (single[key] || !inList[key]) && key != "required"
	default: // null
		return key == "const" || key == "default"
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
