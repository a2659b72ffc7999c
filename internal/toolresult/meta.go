package toolresult

import (
	"bytes"
	"maps"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/decode"
)

// maxKeptMeta bounds the _meta that a Decoder remembers, in bytes.
const maxKeptMeta = 1 << 10

// decodedMeta is a _meta and what it is decoded. It never changes.
type decodedMeta struct {
	raw  []byte
	meta *mcp.Meta
}

// meta decodes the _meta of a result. A modern server says in each who it is, so that
// one that is like the last is copied: each result has a map of its own, but the
// objects in it may be another's too.
func (d *Decoder) meta(raw []byte) (*mcp.Meta, bool) {
	if last := d.last.Load(); last != nil && bytes.Equal(last.raw, raw) {
		return &mcp.Meta{ProgressToken: last.meta.ProgressToken, AdditionalFields: maps.Clone(last.meta.AdditionalFields)}, true
	}
	meta, ok := decode.Meta(raw)
	if ok && meta != nil && len(raw) <= maxKeptMeta {
		kept := &mcp.Meta{ProgressToken: meta.ProgressToken, AdditionalFields: maps.Clone(meta.AdditionalFields)}
		d.last.Store(&decodedMeta{bytes.Clone(raw), kept})
	}
	return meta, ok
}
