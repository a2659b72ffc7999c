package rpc

import (
	"encoding/json"
	"maps"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/encode"
	"github.com/mcppool/mcppool/internal/jsonscan"
)

// RequestMeta is what every request of a modern connection carries in its _meta, see
// https://modelcontextprotocol.io/specification/2026-07-28/basic. It is encoded once
// and never changes. Nil is that of a legacy connection, which has none.
type RequestMeta struct {
	Version string
	fields  map[string]any
	text    json.RawMessage
}

// NewRequestMeta makes the RequestMeta of a revision.
func NewRequestMeta(version string, client mcp.Implementation, h *Handlers) *RequestMeta {
	return newRequestMeta(version, map[string]any{
		mcp.MetaKeyProtocolVersion:    version,
		mcp.MetaKeyClientInfo:         raw(client),
		mcp.MetaKeyClientCapabilities: raw(h.Capabilities()),
	})
}

func newRequestMeta(version string, fields map[string]any) *RequestMeta {
	return &RequestMeta{version, fields, raw(fields)}
}

// raw encodes what can always be.
func raw(v any) json.RawMessage {
	text, err := encode.JSON(v)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return text
}

// Text is the _meta, nil for none. It must not be changed.
func (m *RequestMeta) Text() json.RawMessage {
	if m == nil {
		return nil
	}
	return m.text
}

// WithLevel returns one that asks for log messages of a level as well.
func (m *RequestMeta) WithLevel(level mcp.LoggingLevel) *RequestMeta {
	fields := maps.Clone(m.fields)
	fields[mcp.MetaKeyLogLevel] = level
	return newRequestMeta(m.Version, fields)
}

// Joined returns the _meta with a call's own members, which go before others, and
// with a progress token, unless that is empty. Its error is a [*ConfigError].
func (m *RequestMeta) Joined(own *mcp.Meta, token string) (json.RawMessage, error) {
	fields := make(map[string]any)
	if m != nil {
		fields = maps.Clone(m.fields)
	}
	if own != nil {
		maps.Copy(fields, own.AdditionalFields)
		if own.ProgressToken != nil {
			fields["progressToken"] = own.ProgressToken
		}
	}
	if token != "" {
		fields["progressToken"] = token
	}
	text, err := encode.JSON(fields)
	if err != nil {
		return nil, &ConfigError{Field: "Meta", Reason: "can't be encoded: " + encode.Reason(err)}
	}
	return text, nil
}

// In returns params with the _meta in them; params are an object or nil, and members
// of a _meta in them go before others.
func (m *RequestMeta) In(params json.RawMessage) json.RawMessage {
	switch {
	case m == nil:
		return params
	case len(params) == 0 || string(params) == "{}":
		params = json.RawMessage("{}")
	case jsonscan.HasKey(params, "_meta"):
		return m.merged(params)
	}
	out := make(json.RawMessage, 0, len(params)+len(m.text)+16)
	out = append(append(out, `{"_meta":`...), m.text...)
	if len(params) > len("{}") {
		out = append(out, ',')
	}
	return append(out, params[1:]...)
}

func (m *RequestMeta) merged(params json.RawMessage) json.RawMessage {
	var members, own map[string]json.RawMessage
	if json.Unmarshal(params, &members) != nil || json.Unmarshal(members["_meta"], &own) != nil {
		return params // what isn't an object is the server's to refuse
	}
	fields := maps.Clone(m.fields)
	for name, value := range own {
		fields[name] = value
	}
	members["_meta"] = raw(fields)
	return raw(members)
}
