// Package toolresult decodes the result of a tools/call straight into mcp-go's
// struct. What is common is decoded here, in one pass and with one copy of each
// string; what isn't is left to mcp-go's own code, so that a caller sees no
// difference but speed, and results that mcp-go gives up on.
package toolresult

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

// Unknown makes a content block of what mcp-go can't decode: a type that it
// doesn't know, or a known one with members of the wrong type. Typ is "" if the
// block has no type. Raw is the block's JSON, which Unknown may keep. A nil
// Content leaves the block out. Where Unknown itself is nil, such a block fails
// the whole result, as in mcp-go.
type Unknown func(typ string, raw json.RawMessage) mcp.Content

// Decode decodes the result member of a response to tools/call. Nothing of
// what it returns aliases raw.
//
// Wherever mcp.ParseCallToolResult succeeds, Decode's result is equal to its.
// Besides, Decode accepts
//   - a result without content, which may have structuredContent all the same,
//   - blocks that mcp-go can't decode: unknown is called for each, once,
//   - structuredContent with a number that no float64 holds: it is nil in
//     StructuredContent, and has its digits in RawStructuredContent.
//
// A result that is no object, or whose own members have the wrong types, is an
// error.
func Decode(raw []byte, unknown Unknown) (*mcp.CallToolResult, error) {
	return DecodeScanned(raw, jsonscan.Long{}, unknown)
}

// DecodeScanned is Decode for a result that was scanned before: long is the
// longest string in it, as found then.
func DecodeScanned(raw []byte, long jsonscan.Long, unknown Unknown) (*mcp.CallToolResult, error) {
	s := jsonscan.NewScanned(raw, long)
	if r := common(&s); r != nil {
		return r, nil
	}
	if err := jsonscan.Object(raw); err != nil {
		return nil, fmt.Errorf("decoding the tool's result: %w", err)
	}
	return general(raw, unknown)
}

// common decodes a result that has no surprises; otherwise it returns nil. Of a
// member that occurs twice the last one counts, as in encoding/json.
func common(s *jsonscan.Scanner) *mcp.CallToolResult {
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
			r.StructuredContent = decodeAny(raw)
		case "_meta":
			r.Meta, ok = unmarshal[mcp.Meta](s.Skip())
		case "resultType":
			r.ResultType = decodeResultType(s.String())
		case "requestState":
			r.RequestState = decodeString(s)
		case "inputRequests":
			ok = json.Unmarshal(s.Skip(), &r.InputRequests) == nil
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
	for _, name := range [...]string{"content", "isError", "structuredContent", "_meta", "resultType", "requestState", "inputRequests"} {
		if len(key) == len(name) && bytes.EqualFold(key, []byte(name)) {
			return true
		}
	}
	return false
}

// general decodes a result as mcp.CallToolResult's UnmarshalJSON does, but for
// the exceptions that Decode names. Raw is a valid object.
func general(raw []byte, unknown Unknown) (*mcp.CallToolResult, error) {
	var members struct {
		Meta              *mcp.Meta         `json:"_meta"`
		ResultType        mcp.ResultType    `json:"resultType"`
		Content           []json.RawMessage `json:"content"`
		StructuredContent json.RawMessage   `json:"structuredContent"`
		IsError           bool              `json:"isError"`
		InputRequests     mcp.InputRequests `json:"inputRequests"`
		RequestState      string            `json:"requestState"`
	}
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("decoding the tool's result: %w", err)
	}
	r := new(mcp.CallToolResult)
	r.Meta = members.Meta
	r.ResultType = members.ResultType
	r.IsError = members.IsError
	r.InputRequests = members.InputRequests
	r.RequestState = members.RequestState
	r.RawStructuredContent = members.StructuredContent
	r.StructuredContent = decodeAny(members.StructuredContent)
	for _, raw := range members.Content {
		s := jsonscan.New(raw)
		block, err := decodeBlock(&s)
		if err != nil {
			if unknown == nil {
				return nil, fmt.Errorf("decoding the tool's result: %w", err)
			}
			block = unknown(typeOf(raw), raw)
		}
		if block != nil {
			r.Content = append(r.Content, block)
		}
	}
	return r, nil
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

// unmarshal decodes JSON by encoding/json; null gives nil.
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
