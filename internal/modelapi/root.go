package modelapi

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// maxDepth bounds how deep combinations at the top level are followed.
const maxDepth = 8

const combineWhy = "the API takes no combination of schemas at the top level"

// plain returns a schema without references and combinations of its own: what they
// allow is allowed by its properties. It allows more than they do where it can't say the
// same.
func (c *converter) plain(node map[string]any, path string, depth int) map[string]any {
	for i := 0; node["$ref"] != nil; i++ {
		ref, _ := node["$ref"].(string)
		delete(node, "$ref")
		into := c.target(ref)
		if into == nil || i == maxDepth {
			c.changed(join(path, "$ref"), "left out", "it refers to nothing that can be copied")
			break
		}
		c.changed(join(path, "$ref"), "replaced by what it refers to", "the API takes no reference at the top level")
		maps.Copy(into, node)
		node = into
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, isList := node[key].([]any)
		if _, ok := node[key]; !ok {
			continue
		}
		delete(node, key)
		if !isList {
			continue // it isn't valid anywhere
		}
		c.changed(join(path, key), "merged into one object", combineWhy)
		if depth == maxDepth {
			continue
		}
		variants := c.variants(list, join(path, key), depth)
		if key == "allOf" {
			mergeAll(node, variants)
		} else {
			mergeAny(node, variants)
		}
	}
	return node
}

// variants are the members of a combination that are objects.
func (c *converter) variants(list []any, path string, depth int) (out []map[string]any) {
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			continue
		}
		m = c.plain(m, join(path, strconv.Itoa(i)), depth+1)
		if t, ok := m["type"].(string); ok && t != "object" {
			continue
		}
		out = append(out, m)
	}
	return out
}

// mergeAll makes node allow what all variants allow.
func mergeAll(node map[string]any, variants []map[string]any) {
	for _, v := range variants {
		props := properties(node)
		for name, schema := range properties(v) {
			into, both := props[name].(map[string]any)
			add, isMap := schema.(map[string]any)
			if both && isMap {
				for key, value := range add {
					if _, ok := into[key]; !ok {
						into[key] = value
					}
				}
				continue
			}
			props[name] = schema
		}
		node["properties"] = props
		require(node, append(texts(node["required"]), texts(v["required"])...))
		for key, value := range v {
			if _, ok := node[key]; !ok {
				node[key] = value
			}
		}
		if node["additionalProperties"] == false && v["additionalProperties"] != false {
			delete(node, "additionalProperties") // it would refuse the other's properties
		}
	}
}

// mergeAny makes node allow what any of the variants allows.
func mergeAny(node map[string]any, variants []map[string]any) {
	if len(variants) == 0 {
		return
	}
	props := properties(node)
	found := make(map[string][]any)
	closed := true
	required := texts(variants[0]["required"])
	for _, v := range variants {
		closed = closed && v["additionalProperties"] == false
		must := texts(v["required"])
		required = slices.DeleteFunc(required, func(name string) bool { return !slices.Contains(must, name) })
		for name, schema := range properties(v) {
			known := slices.ContainsFunc(found[name], func(s any) bool { return reflect.DeepEqual(s, schema) })
			if _, own := props[name]; !own && !known {
				found[name] = append(found[name], schema)
			}
		}
		mergeDefinitions(node, v)
	}
	for name, schemas := range found {
		props[name] = either(schemas)
	}
	node["properties"] = props
	require(node, append(texts(node["required"]), required...))
	if _, ok := node["additionalProperties"]; !ok && closed {
		node["additionalProperties"] = false
	}
}

// mergeDefinitions keeps what a variant's references may lead to.
func mergeDefinitions(node, v map[string]any) {
	for _, key := range []string{"$defs", "definitions"} {
		defs, ok := v[key].(map[string]any)
		if !ok {
			continue
		}
		into, ok := node[key].(map[string]any)
		if !ok {
			into = make(map[string]any)
			node[key] = into
		}
		for name, def := range defs {
			if _, ok := into[name]; !ok {
				into[name] = def
			}
		}
	}
}

// either returns a schema for what any of the schemas allows. Values that tell variants
// apart become one list.
func either(schemas []any) any {
	if len(schemas) == 1 {
		return schemas[0]
	}
	var values []any
	for _, s := range schemas {
		m, _ := s.(map[string]any)
		list, ok := m["enum"].([]any)
		if v, isConst := m["const"]; isConst {
			list, ok = []any{v}, true
		}
		if !ok {
			return map[string]any{"anyOf": schemas}
		}
		for _, v := range list {
			if !slices.ContainsFunc(values, func(have any) bool { return reflect.DeepEqual(have, v) }) {
				values = append(values, v)
			}
		}
	}
	merged := map[string]any{"enum": values}
	if t, ok := schemas[0].(map[string]any)["type"]; ok {
		merged["type"] = t
		for _, s := range schemas {
			if !reflect.DeepEqual(s.(map[string]any)["type"], t) {
				delete(merged, "type")
			}
		}
	}
	return merged
}

func properties(node map[string]any) map[string]any {
	if props, ok := node["properties"].(map[string]any); ok {
		return props
	}
	return make(map[string]any)
}

func require(node map[string]any, names []string) {
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 0 {
		node["required"] = anys(names)
	}
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
