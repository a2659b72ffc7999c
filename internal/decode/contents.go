package decode

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/rpc"
)

// result is what the results of resources/read and prompts/get have in common.
type result struct {
	Meta          json.RawMessage   `json:"_meta"`
	ResultType    mcp.ResultType    `json:"resultType"`
	InputRequests mcp.InputRequests `json:"inputRequests"`
	RequestState  string            `json:"requestState"`
}

func (r *result) needsInput() bool { return r.ResultType == mcp.ResultTypeInputRequired }

// Resource decodes the result of resources/read. Of several contents those that
// can't be understood are left out.
func Resource(raw []byte) (*mcp.ReadResourceResult, error) {
	read, err := Into[struct {
		result
		TTLMs      *int64            `json:"ttlMs"`
		CacheScope mcp.CacheScope    `json:"cacheScope"`
		Contents   []json.RawMessage `json:"contents"`
	}](raw)
	if err != nil {
		return nil, err
	}
	out := new(mcp.ReadResourceResult)
	out.ResultType, out.InputRequests, out.RequestState = read.ResultType, read.InputRequests, read.RequestState
	out.TTLMs, out.CacheScope = read.TTLMs, read.CacheScope
	out.Meta, _ = Meta(read.Meta)
	if read.Contents == nil && !read.needsInput() {
		return nil, &rpc.AnswerError{Reason: "contents is missing"}
	}
	for _, raw := range read.Contents {
		content, wrong := contentsOf(raw)
		if wrong != nil {
			err = wrong
			continue
		}
		out.Contents = append(out.Contents, content)
	}
	if len(out.Contents) == 0 && err != nil {
		return nil, err
	}
	return out, nil
}

// contentsOf decodes the contents of one resource.
func contentsOf(raw []byte) (mcp.ResourceContents, error) {
	c, err := Into[struct {
		URI      string          `json:"uri"`
		MIMEType string          `json:"mimeType"`
		Text     *string         `json:"text"`
		Blob     *string         `json:"blob"`
		Meta     json.RawMessage `json:"_meta"`
	}](raw)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if meta, ok := Value(c.Meta).(map[string]any); ok {
		fields = meta
	}
	switch {
	case c.URI == "":
		return nil, &rpc.AnswerError{Reason: "a resource has no uri"}
	case c.Text != nil:
		return mcp.TextResourceContents{Meta: fields, URI: c.URI, MIMEType: c.MIMEType, Text: *c.Text}, nil
	case c.Blob != nil:
		return mcp.BlobResourceContents{Meta: fields, URI: c.URI, MIMEType: c.MIMEType, Blob: *c.Blob}, nil
	default:
		return nil, &rpc.AnswerError{Reason: "a resource has neither text nor blob"}
	}
}

// Message is a message of a prompt whose content isn't decoded.
type Message struct {
	Role    mcp.Role        `json:"role"`
	Content json.RawMessage `json:"content"`
}

// Prompt decodes the result of prompts/get but for its messages.
func Prompt(raw []byte) (*mcp.GetPromptResult, []Message, error) {
	got, err := Into[struct {
		result
		Description string    `json:"description"`
		Messages    []Message `json:"messages"`
	}](raw)
	if err != nil {
		return nil, nil, err
	}
	out := &mcp.GetPromptResult{Description: got.Description}
	out.ResultType, out.InputRequests, out.RequestState = got.ResultType, got.InputRequests, got.RequestState
	out.Meta, _ = Meta(got.Meta)
	for _, m := range got.Messages {
		if m.Role != mcp.RoleUser && m.Role != mcp.RoleAssistant {
			return nil, nil, &rpc.AnswerError{Reason: "a message has a role that isn't known: " + clip(string(m.Role))}
		}
	}
	return out, got.Messages, nil
}
