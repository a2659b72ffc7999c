package mcpservers

import (
	"bytes"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// parseText reads text of the format that its name says. An empty file is nil.
func parseText(name string, data []byte) (*node, *Error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, &Error{Reason: "is UTF-16: save it as UTF-8"}
	}
	if !utf8.Valid(data) {
		return nil, &Error{Reason: "isn't UTF-8 text: save it as UTF-8"}
	}
	blank := len(bytes.TrimSpace(data)) == 0
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json", ".jsonc", ".json5":
		root, err := parseJSON(data)
		if err != nil {
			return nil, otherFormat(data, err)
		}
		return root, nil
	case ".toml":
		root, err := parseTOML(data)
		if err != nil && looksLikeJSON(data) {
			return nil, &Error{Reason: "is JSON: name it .json"}
		}
		return root, err
	case ".yaml", ".yml":
		return parseYAML(data) // which JSON is, too
	}
	if blank || looksLikeJSON(data) {
		return parseJSON(data)
	}
	if root, err := parseTOML(data); err == nil {
		return root, nil
	}
	return parseYAML(data)
}

// looksLikeJSON reports whether text begins as an object of JSON does, after
// comments.
func looksLikeJSON(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(plainJSON(data)), []byte("{"))
}

// otherFormat is err, or that text is of another format than its name says.
func otherFormat(data []byte, err *Error) *Error {
	if looksLikeJSON(data) {
		return err
	}
	if root, e := parseTOML(data); e == nil && root != nil {
		return &Error{Reason: "is TOML: name it .toml"}
	}
	if root, e := parseYAML(data); e == nil && root != nil && root.kind == object {
		return &Error{Reason: "is YAML: name it .yaml"}
	}
	return err
}
