// Package toolresult decodes the result of a tools/call straight into mcp-go's
// struct. What is common is decoded here, in one pass and with one copy of each
// string; what isn't is left to mcp-go's own code, so that a caller sees no
// difference but speed, and results that mcp-go gives up on.
package toolresult

import (
	"bytes"
	"encoding/json"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/decode"
	"github.com/mcppool/mcppool/internal/jsonscan"
	"github.com/mcppool/mcppool/internal/rpc"
)

// Unknown makes a content block of what mcp-go can't decode: a type that it
// doesn't know, or a known one with members of the wrong type. Typ is "" if the
// block has no type. Raw is the block's JSON, which Unknown may keep. A nil
// Content leaves the block out. Where Unknown itself is nil, such a block fails
// the whole result, as in mcp-go.
type Unknown func(typ string, raw json.RawMessage) mcp.Content

// Decoder decodes the results of one connection. It may be used from any goroutine.
type Decoder struct {
	Unknown Unknown // nil as its doc says

	last atomic.Pointer[decodedMeta]
}

// Decode decodes the result member of a response to tools/call. Nothing of
// what it returns aliases raw.
//
// Wherever mcp.ParseCallToolResult succeeds, Decode's result is equal to its, but
// that numbers of a _meta which no float64 holds are of type json.Number. Besides,
// Decode accepts
//   - a result without content, which may have structuredContent all the same,
//   - blocks that mcp-go can't decode: Unknown is called for each, once,
//   - structuredContent with a number that no float64 holds: it is nil in
//     StructuredContent, and has its digits in RawStructuredContent,
//   - what package decode mends, in the result and in its blocks,
//   - a _meta that is no object, which is left out,
//   - content that is one block, or a string,
//   - the toolResult of the protocol's first drafts.
//
// A result that is no object, or whose own members have the wrong types, is an
// [rpc.AnswerError].
func (d *Decoder) Decode(raw []byte) (*mcp.CallToolResult, error) {
	return d.DecodeScanned(raw, jsonscan.Long{})
}

// DecodeScanned is Decode for a result that was scanned before: long is the
// longest string in it, as found then.
func (d *Decoder) DecodeScanned(raw []byte, long jsonscan.Long) (*mcp.CallToolResult, error) {
	s := jsonscan.NewScanned(raw, long)
	if r := d.common(&s); r != nil {
		return r, nil
	}
	if err := jsonscan.Object(raw); err != nil {
		return nil, decode.Unclear(err)
	}
	return general(raw, d.Unknown)
}

// common decodes a result that has no surprises; otherwise it returns nil. Of a
// member that occurs twice the last one counts, as in encoding/json.
func (d *Decoder) common(s *jsonscan.Scanner) *mcp.CallToolResult {
	s.Enter('{')
	r := new(mcp.CallToolResult)
	for key, more := s.Key(); more; key, more = s.Key() {
		ok := true
		switch string(key.Body) {
		case "content":
			r.Content, ok = commonContent(s)
		case "isError":
			value := string(s.Skip())
			r.IsError = value == "true"
			ok = value == "true" || value == "false"
		case "structuredContent":
			raw := s.Skip()
			r.RawStructuredContent = bytes.Clone(raw)
			r.StructuredContent = decode.Any(raw)
		case "_meta":
			r.Meta, ok = d.meta(s.Skip())
		case "resultType":
			r.ResultType = decodeResultType(s.String())
		case "requestState":
			r.RequestState = decodeString(s)
		case "inputRequests":
			ok = json.Unmarshal(s.Skip(), &r.InputRequests) == nil
		case "toolResult":
			ok = false
		default:
			ok = key.Plain() && !foldsToMember(key.Body)
			s.Skip()
		}
		if !ok {
			return nil
		}
	}
	if s.End() != nil {
		return nil
	}
	return r
}

func commonContent(s *jsonscan.Scanner) (content []mcp.Content, ok bool) {
	s.Enter('[')
	for s.Elem() {
		block, err := decodeBlock(s)
		if err != nil {
			return nil, false
		}
		content = append(content, block)
	}
	return content, true // a syntax error is for End to find
}

// foldsToMember says whether encoding/json, which ignores case, would take a
// plain key for one of the result's members.
func foldsToMember(key []byte) bool {
	for _, name := range [...]string{"content", "isError", "structuredContent", "_meta", "resultType", "requestState", "inputRequests", "toolResult"} {
		if len(key) == len(name) && bytes.EqualFold(key, []byte(name)) {
			return true
		}
	}
	return false
}

// members are those of a result, with the content undecoded.
type members struct {
	Meta              json.RawMessage   `json:"_meta"`
	ResultType        mcp.ResultType    `json:"resultType"`
	Content           json.RawMessage   `json:"content"`
	StructuredContent json.RawMessage   `json:"structuredContent"`
	IsError           bool              `json:"isError"`
	InputRequests     mcp.InputRequests `json:"inputRequests"`
	RequestState      string            `json:"requestState"`
	ToolResult        json.RawMessage   `json:"toolResult"`
}

// general decodes a result as mcp.CallToolResult's UnmarshalJSON does, but for
// the exceptions that Decode names. Raw is a valid object.
func general(raw []byte, unknown Unknown) (*mcp.CallToolResult, error) {
	m, err := decode.Into[members](raw)
	if err != nil {
		return nil, err
	}
	if m.Content == nil && m.StructuredContent == nil && m.ToolResult != nil {
		return draft(m, unknown)
	}
	r := new(mcp.CallToolResult)
	r.Meta, _ = decode.Meta(m.Meta) // one that is no object says nothing of the result
	r.ResultType = m.ResultType
	r.IsError = m.IsError
	r.InputRequests = m.InputRequests
	r.RequestState = m.RequestState
	r.RawStructuredContent = m.StructuredContent
	r.StructuredContent = decode.Any(m.StructuredContent)
	r.Content, err = content(m.Content, unknown)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// draft decodes a result of the protocol's first drafts, whose toolResult is any
// JSON: the content, a result as of today, or a value.
func draft(m *members, unknown Unknown) (*mcp.CallToolResult, error) {
	if m.ToolResult[0] == '{' && jsonscan.HasKey(m.ToolResult, "content") {
		return general(m.ToolResult, unknown)
	}
	r := &mcp.CallToolResult{IsError: m.IsError}
	r.Meta, _ = decode.Meta(m.Meta)
	switch m.ToolResult[0] {
	case '"':
		r.Content, _ = content(m.ToolResult, unknown) // a string is always content
	case 'n':
		return r, nil
	default:
		r.Content = []mcp.Content{mcp.NewTextContent(string(m.ToolResult))}
	}
	return r, nil
}

// content decodes the content of a result: a list of blocks, or one, or a text.
func content(raw json.RawMessage, unknown Unknown) (all []mcp.Content, err error) {
	switch {
	case raw == nil, raw[0] == 'n':
		return nil, nil
	case raw[0] == '"':
		s := jsonscan.New(raw)
		return []mcp.Content{mcp.NewTextContent(decodeString(&s))}, nil
	case raw[0] == '{':
		block, err := Block(raw, unknown)
		if block == nil || err != nil || isEmptyObject(raw) {
			return nil, err
		}
		return []mcp.Content{block}, nil
	case raw[0] != '[':
		return nil, &rpc.AnswerError{Reason: "content is no array"}
	}
	s := jsonscan.New(raw)
	s.Enter('[')
	for s.Elem() {
		block, err := Block(s.Skip(), unknown)
		if err != nil {
			return nil, err
		}
		if block != nil {
			all = append(all, block)
		}
	}
	return all, nil
}

func isEmptyObject(raw []byte) bool { return len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0 }

// Block decodes one content block, which is valid JSON. It is nil where unknown
// leaves it out.
func Block(raw json.RawMessage, unknown Unknown) (mcp.Content, error) {
	s := jsonscan.New(raw)
	block, err := decodeBlock(&s)
	if err == nil {
		return block, nil
	}
	if mended := decode.Mend[shape](raw); !bytes.Equal(mended, raw) {
		s = jsonscan.New(mended)
		if block, err := decodeBlock(&s); err == nil {
			return block, nil
		}
	}
	if unknown == nil {
		return nil, &rpc.AnswerError{Reason: "it has a block that isn't known"}
	}
	return unknown(typeOf(raw), bytes.Clone(raw)), nil
}

// shape is what can be mended of a block, whatever its type.
type shape struct {
	Meta        *mcp.Meta        `json:"_meta"`
	Annotations *mcp.Annotations `json:"annotations"`
	Resource    *struct {
		Meta map[string]any `json:"_meta"`
	} `json:"resource"`
}

// typeOf returns a block's type, found as mcp-go finds it.
func typeOf(raw json.RawMessage) string {
	var block struct {
		Type any `json:"type"`
	}
	_ = json.Unmarshal(raw, &block) // raw is valid; only an object has a type
	typ, _ := block.Type.(string)
	return typ
}

// unmarshal decodes JSON by encoding/json; null becomes nil.
func unmarshal[T any](raw []byte) (*T, bool) {
	var v *T
	err := json.Unmarshal(raw, &v)
	return v, err == nil
}

// decodeResultType allocates nothing for the type that nearly all results of
// modern servers have.
func decodeResultType(s jsonscan.String) mcp.ResultType {
	if s.Is(string(mcp.ResultTypeComplete)) {
		return mcp.ResultTypeComplete
	}
	return mcp.ResultType(s.Decode())
}

func decodeString(s *jsonscan.Scanner) string {
	str := s.String()
	return str.Decode()
}
