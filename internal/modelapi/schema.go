package modelapi

import (
	"encoding/json"
	"slices"
	"strings"
)

// maxCopied bounds, in values, what one schema may grow by when what it refers to is
// copied into it.
const maxCopied = 100_000

// converter makes one schema.
type converter struct {
	api     *API
	source  map[string]any // the schema as the server wrote it; never changed
	changes []Change
	left    int // how many more values may be copied
}

// Schema returns the schema of an object with properties that the API takes in place of
// raw, and what was changed. The map is the caller's. That of a tool which takes nothing
// has no properties; members that are missing are filled in without a word.
func (a *API) Schema(raw json.RawMessage) (map[string]any, []Change) {
	c := &converter{api: a, source: parse(raw), left: maxCopied}
	if c.source == nil {
		c.source = make(map[string]any)
		c.changed("", "replaced by an object without properties", "it is no object")
	}
	root, _ := clone(c.source).(map[string]any)
	root = c.plain(root, "", 0)
	c.objectRoot(root)
	root, _ = c.inline(root, root, "", nil).(map[string]any)
	c.mend(root, "")
	if a.subset {
		root = c.reduceRoot(root)
	}
	c.rename(root, "")
	return root, c.changes
}

func (c *converter) changed(path, what, why string) {
	c.changes = append(c.changes, Change{Path: path, What: what, Why: why})
}

// drop removes members of a schema that the API refuses.
func (c *converter) drop(node map[string]any, path, why string, keys ...string) {
	for _, key := range keys {
		if _, ok := node[key]; ok {
			delete(node, key)
			c.changed(join(path, key), "left out", why)
		}
	}
}

// objectRoot makes root say that it is an object with properties.
func (c *converter) objectRoot(root map[string]any) {
	c.drop(root, "", "the API takes none at the top level", "not", "enum", "const")
	switch t := root["type"].(type) {
	case nil:
	case string:
		if t != "object" && t != "" {
			c.changed("/type", `replaced by "object"`, "arguments are an object")
		}
	default:
		c.changed("/type", `replaced by "object"`, "the API takes no other type at the top level")
	}
	root["type"] = "object"
	if _, ok := root["properties"].(map[string]any); !ok {
		root["properties"] = make(map[string]any)
	}
	if r, ok := root["required"].([]any); ok && len(r) == 0 {
		delete(root, "required") // draft 4 refuses an empty one
	}
}

// inline returns v with what it refers to in place of each reference that doesn't hold
// in root: all of them where the API takes none, else those that lead through what has
// moved. It has copied what it returns.
func (c *converter) inline(root map[string]any, v any, path string, open []string) any {
	node, ok := v.(map[string]any)
	if !ok {
		return v
	}
	ref, ok := node["$ref"].(string)
	if ok && !c.holds(root, ref) {
		return c.inlineRef(root, node, path, append(slices.Clip(open), ref))
	}
	eachSub(node, path, func(sub any, path string) any { return c.inline(root, sub, path, open) })
	return node
}

// target returns a copy of the schema that a reference refers to; nil where there is
// none, or no more may be copied.
func (c *converter) target(ref string) map[string]any {
	target, _ := resolve(c.source, ref)
	if c.left -= size(target); c.left < 0 {
		return nil
	}
	into, _ := clone(target).(map[string]any)
	return into
}

func (c *converter) inlineRef(root, node map[string]any, path string, open []string) any {
	ref := open[len(open)-1]
	if slices.Contains(open[:len(open)-1], ref) {
		delete(node, "$ref")
		c.changed(join(path, "$ref"), "left out", "it refers to what it is part of, and the API takes no references")
		return node
	}
	into := c.target(ref)
	if into == nil {
		delete(node, "$ref")
		c.changed(join(path, "$ref"), "left out", "it refers to nothing that can be copied")
		return node
	}
	for key, value := range node {
		if key != "$ref" {
			into[key] = value // what stands beside a reference is nearer
		}
	}
	if c.api.subset {
		c.changed(join(path, "$ref"), "replaced by what it refers to", "the API takes no references")
	}
	return c.inline(root, into, path, open)
}

// holds reports whether a reference may stay as it is.
func (c *converter) holds(root map[string]any, ref string) bool {
	if c.api.subset {
		return false
	}
	list, ok := segments(ref)
	if !ok {
		return !strings.HasPrefix(ref, "#") // an anchor isn't followed; elsewhere is not ours to judge
	}
	for i, s := range list {
		if i > 0 && list[i-1] == "properties" && c.refuses(s) {
			return false
		}
	}
	_, ok = resolve(root, ref)
	return ok
}

func (c *converter) refuses(name string) bool { return isRenamed(name) || !c.api.property(name) }

// rename gives the properties that the API refuses a new name, at any depth.
func (c *converter) rename(v any, path string) {
	node, ok := v.(map[string]any)
	if !ok {
		return
	}
	eachSub(node, path, func(sub any, path string) any {
		c.rename(sub, path)
		return sub
	})
	props, ok := node["properties"].(map[string]any)
	if !ok {
		return
	}
	names := make(map[string]string)
	for name := range props {
		if c.refuses(name) {
			names[name] = renamed(name)
		}
	}
	for _, name := range sorted(names) {
		why := "it looks like a new name"
		if !c.api.property(name) {
			why = "the API takes " + c.api.names
		}
		c.changed(join(join(path, "properties"), name), "renamed to "+names[name], why)
		props[names[name]] = props[name]
		delete(props, name)
	}
	renameRequired(node, names)
}

// renameRequired follows new names of properties where they are required.
func renameRequired(node map[string]any, names map[string]string) {
	list, _ := node["required"].([]any)
	for i := range list {
		if s, ok := list[i].(string); ok && names[s] != "" {
			list[i] = names[s]
		}
	}
	for _, key := range []string{"dependentRequired", "dependentSchemas"} {
		m, _ := node[key].(map[string]any)
		for name, value := range m {
			if names[name] != "" {
				delete(m, name)
				m[names[name]] = value
			}
			others, _ := value.([]any)
			for i := range others {
				if s, ok := others[i].(string); ok && names[s] != "" {
					others[i] = names[s]
				}
			}
		}
	}
}
