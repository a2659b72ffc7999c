package modelapi

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// subsetMembers are those that a schema of Gemini's may have.
var subsetMembers = words("type format title description nullable default items minItems maxItems enum properties required minProperties maxProperties minimum maximum minLength maxLength pattern anyOf")

// silent are members that say nothing of the values that are allowed.
var silent = words("$schema $id $anchor $comment $defs definitions examples example deprecated readOnly writeOnly")

var formats = map[string]map[string]bool{
	"string": words("enum date-time"), "number": words("float double"), "integer": words("int32 int64"),
}

const subsetWhy = "the API takes only a subset of OpenAPI 3.0"

func (c *converter) reduceRoot(root map[string]any) map[string]any {
	return c.reduceOne(root, "")
}

// reduce makes a schema one of the subset.
func (c *converter) reduce(v any, path string) map[string]any {
	node, ok := v.(map[string]any)
	if !ok {
		node = make(map[string]any) // true, or what isn't a schema at all
	}
	node = c.reduceAll(node, path)
	c.reduceConst(node, path)
	variants := c.reduceVariants(node, path)
	if len(variants) == 0 {
		return c.reduceOne(node, path)
	}
	description, _ := node["description"].(string)
	nullable := node["nullable"] == true
	out := make([]any, len(variants))
	for i, variant := range variants {
		m := c.reduce(variant, join(join(path, "anyOf"), strconv.Itoa(i)))
		if _, ok := m["description"]; !ok && description != "" && m["anyOf"] == nil {
			m["description"] = description
		}
		if nullable && m["anyOf"] == nil {
			m["nullable"] = true
		}
		out[i] = m
	}
	if len(out) == 1 {
		return out[0].(map[string]any)
	}
	return map[string]any{"anyOf": out} // the only member, as the API asks for
}

// reduceAll merges what a schema is a combination of into it.
func (c *converter) reduceAll(node map[string]any, path string) map[string]any {
	list, ok := node["allOf"].([]any)
	if !ok {
		return node
	}
	delete(node, "allOf")
	c.changed(join(path, "allOf"), "merged into one schema", subsetWhy)
	for _, v := range list {
		if m, ok := v.(map[string]any); ok {
			mergeAll(node, []map[string]any{c.reduceAll(m, path)})
		}
	}
	if len(properties(node)) == 0 {
		delete(node, "properties")
	}
	return node
}

func (c *converter) reduceConst(node map[string]any, path string) {
	value, ok := node["const"]
	if !ok {
		return
	}
	delete(node, "const")
	node["enum"] = []any{value}
	c.changed(join(path, "const"), "written as an enum", subsetWhy)
}

// reduceVariants takes the variants out of a schema that has any: of anyOf, of oneOf,
// and of a list of types. Null among them becomes nullable.
func (c *converter) reduceVariants(node map[string]any, path string) (variants []any) {
	for _, key := range []string{"anyOf", "oneOf"} {
		list, ok := node[key].([]any)
		if !ok {
			continue
		}
		delete(node, key)
		if key == "oneOf" {
			c.changed(join(path, key), "written as anyOf", subsetWhy)
		}
		variants = append(variants, list...)
	}
	if types, ok := node["type"].([]any); ok {
		delete(node, "type")
		c.changed(join(path, "type"), "one schema for each type", subsetWhy)
		if len(variants) == 0 {
			for _, t := range types {
				m, _ := clone(node).(map[string]any)
				m["type"] = t
				variants = append(variants, m)
			}
		}
	}
	isNull := func(v any) bool {
		m, _ := v.(map[string]any)
		return m["type"] == "null"
	}
	if slices.ContainsFunc(variants, isNull) {
		variants = slices.DeleteFunc(variants, isNull)
		node["nullable"] = true
	}
	return variants
}

// reduceOne reduces a schema that has no variants.
func (c *converter) reduceOne(node map[string]any, path string) map[string]any {
	if node["type"] == "null" {
		delete(node, "type")
		node["nullable"] = true
	}
	kind, ok := node["type"].(string)
	if !ok {
		kind = inferType(node)
		node["type"] = kind
		c.changed(join(path, "type"), "added: "+kind, "the API asks for one")
	}
	c.reduceEnum(node, kind, path)
	c.reduceBounds(node, path)
	for _, key := range sorted(node) {
		switch {
		case subsetMembers[key]:
		case silent[key]:
			delete(node, key)
		default:
			c.drop(node, path, subsetWhy, key)
		}
	}
	if f, ok := node["format"].(string); ok && !formats[kind][f] {
		c.drop(node, path, "the API knows no such format of a "+kind, "format")
	}
	c.reduceParts(node, kind, path)
	return node
}

// reduceParts reduces the schemas within one.
func (c *converter) reduceParts(node map[string]any, kind, path string) {
	if props, ok := node["properties"].(map[string]any); ok {
		for _, name := range sorted(props) {
			props[name] = c.reduce(props[name], join(join(path, "properties"), name))
		}
	}
	if _, ok := node["items"]; ok || kind == "array" {
		node["items"] = c.reduce(node["items"], join(path, "items"))
	}
	required := texts(node["required"])
	known := properties(node)
	kept := slices.DeleteFunc(slices.Clone(required), func(name string) bool { _, ok := known[name]; return !ok })
	if len(kept) < len(required) {
		c.changed(join(path, "required"), "shortened to the properties that there are", "the API checks them")
	}
	delete(node, "required")
	if len(kept) > 0 {
		node["required"] = anys(kept)
	}
}

// reduceEnum keeps an enum of texts, and puts other values into the description.
func (c *converter) reduceEnum(node map[string]any, kind, path string) {
	values, ok := node["enum"].([]any)
	if !ok {
		return
	}
	list := texts(values)
	if kind == "string" {
		if len(list) < len(values) && slices.Contains(values, nil) {
			node["nullable"] = true
		}
		if list = slices.DeleteFunc(list, func(s string) bool { return s == "" }); len(list) > 0 {
			node["enum"] = anys(list)
			if len(list) < len(values) {
				c.changed(join(path, "enum"), "shortened to its texts", subsetWhy)
			}
			return
		}
	}
	delete(node, "enum")
	var said []string
	for _, v := range values {
		text, _ := json.Marshal(v) // it was JSON
		said = append(said, string(text))
	}
	description, _ := node["description"].(string)
	node["description"] = strings.TrimSpace(description + " One of: " + strings.Join(said, ", ") + ".")
	c.changed(join(path, "enum"), "moved to the description", "the API takes enums of texts only")
}

// reduceBounds makes a bound that excludes its value one that includes it.
func (c *converter) reduceBounds(node map[string]any, path string) {
	for _, pair := range [][2]string{{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}} {
		if bound, ok := node[pair[0]]; ok {
			delete(node, pair[0])
			if node[pair[1]] == nil {
				node[pair[1]] = bound
			}
			c.changed(join(path, pair[0]), "written as "+pair[1], subsetWhy)
		}
	}
}

// inferType guesses the type of a schema that names none.
func inferType(node map[string]any) string {
	has := func(keys string) bool {
		for key := range words(keys) {
			if _, ok := node[key]; ok {
				return true
			}
		}
		return false
	}
	switch values, _ := node["enum"].([]any); {
	case has("properties required minProperties maxProperties additionalProperties patternProperties"):
		return "object"
	case has("items prefixItems minItems maxItems uniqueItems"):
		return "array"
	case len(values) > 0 && len(texts(values)) == 0:
		switch values[0].(type) {
		case bool:
			return "boolean"
		case json.Number:
			return "number"
		}
	case has("minimum maximum multipleOf exclusiveMinimum exclusiveMaximum"):
		return "number"
	}
	return "string"
}
