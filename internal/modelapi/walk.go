package modelapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Where schemas stand in a schema: under a name, alone, or in a list.
var (
	byName = words("properties patternProperties $defs definitions dependentSchemas")
	single = words("additionalProperties unevaluatedProperties propertyNames items additionalItems unevaluatedItems contains not if then else")
	inList = words("anyOf oneOf allOf prefixItems items")
)

func words(s string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(s) {
		set[w] = true
	}
	return set
}

// parse decodes a schema, with its numbers as they are written; nil for one that isn't
// an object.
func parse(raw json.RawMessage) map[string]any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var m map[string]any
	if d.Decode(&m) != nil {
		return nil
	}
	return m
}

// eachSub replaces each schema directly within node by what f returns for it, in one
// order. Node and its maps and lists of schemas are changed in place.
func eachSub(node map[string]any, path string, f func(sub any, path string) any) {
	for _, key := range slices.Sorted(maps.Keys(node)) {
		at := join(path, key)
		switch v := node[key].(type) {
		case map[string]any:
			if byName[key] {
				for _, name := range slices.Sorted(maps.Keys(v)) {
					v[name] = f(v[name], join(at, name))
				}
			} else if single[key] {
				node[key] = f(v, at)
			}
		case []any:
			if inList[key] {
				for i := range v {
					v[i] = f(v[i], join(at, strconv.Itoa(i)))
				}
			}
		case bool:
			if single[key] {
				node[key] = f(v, at)
			}
		}
	}
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func join(path, segment string) string { return path + "/" + pointerEscapes.Replace(segment) }

// segments are those of a reference within the document, unescaped; ok is false for one
// to elsewhere.
func segments(ref string) (list []string, ok bool) {
	if ref == "#" {
		return nil, true
	}
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	for s := range strings.SplitSeq(pointer, "/") {
		if plain, err := url.PathUnescape(s); err == nil {
			s = plain
		}
		list = append(list, strings.NewReplacer("~1", "/", "~0", "~").Replace(s))
	}
	return list, true
}

// resolve returns what a reference within root refers to.
func resolve(root map[string]any, ref string) (target any, ok bool) {
	list, ok := segments(ref)
	if !ok {
		return nil, false
	}
	target = root
	for _, s := range list {
		switch v := target.(type) {
		case map[string]any:
			if target, ok = v[s]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(s)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			target = v[i]
		default:
			return nil, false
		}
	}
	return target, true
}

// clone copies a value with all that it holds.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for k, e := range v {
			c[k] = clone(e)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = clone(e)
		}
		return c
	default:
		return v
	}
}

// size is how many values v consists of.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += size(e)
		}
	case []any:
		for _, e := range v {
			n += size(e)
		}
	}
	return n
}

func texts(v any) (list []string) {
	all, _ := v.([]any)
	for _, e := range all {
		if s, ok := e.(string); ok && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
