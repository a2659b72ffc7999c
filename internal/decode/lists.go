package decode

import (
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/jsonscan"
	"github.com/mcppool/mcppool/internal/rpc"
)

// page decodes what all lists have in common, and returns the entries undecoded.
func page(raw []byte, member string, common *mcp.PaginatedResult) ([]json.RawMessage, error) {
	head, err := Into[struct {
		Meta       json.RawMessage `json:"_meta"`
		NextCursor mcp.Cursor      `json:"nextCursor"`
		ResultType mcp.ResultType  `json:"resultType"`
		TTLMs      *int64          `json:"ttlMs"`
		CacheScope mcp.CacheScope  `json:"cacheScope"`
	}](raw)
	if err != nil {
		return nil, err
	}
	common.NextCursor, common.ResultType = head.NextCursor, head.ResultType
	common.TTLMs, common.CacheScope = head.TTLMs, head.CacheScope
	if head.Meta != nil {
		common.Meta, _ = Meta(head.Meta) // one that is no object says nothing
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members) // it is an object, or [] in place of an empty one
	list := members[member]
	switch {
	case list == nil, string(list) == "null", isEmpty(list, '{'):
		return nil, nil
	case list[0] != '[':
		return nil, &rpc.AnswerError{Reason: member + " is no array"}
	}
	var entries []json.RawMessage
	s := jsonscan.New(list)
	s.Enter('[')
	for s.Elem() {
		entries = append(entries, s.Skip())
	}
	return entries, nil
}

// each decodes the entries of a list; what can't be is left out.
func each[T any](entries []json.RawMessage) []T {
	all := make([]T, 0, len(entries))
	for _, raw := range entries {
		if v, err := Into[T](raw); err == nil {
			all = append(all, *v)
		}
	}
	return all
}

// Resources decodes the result of resources/list.
func Resources(raw []byte) (*mcp.ListResourcesResult, error) {
	list := new(mcp.ListResourcesResult)
	entries, err := page(raw, "resources", &list.PaginatedResult)
	list.Resources = each[mcp.Resource](entries)
	return list, err
}

// Templates decodes the result of resources/templates/list.
func Templates(raw []byte) (*mcp.ListResourceTemplatesResult, error) {
	list := new(mcp.ListResourceTemplatesResult)
	entries, err := page(raw, "resourceTemplates", &list.PaginatedResult)
	list.ResourceTemplates = each[mcp.ResourceTemplate](entries)
	return list, err
}

// Prompts decodes the result of prompts/list.
func Prompts(raw []byte) (*mcp.ListPromptsResult, error) {
	list := new(mcp.ListPromptsResult)
	entries, err := page(raw, "prompts", &list.PaginatedResult)
	list.Prompts = each[mcp.Prompt](entries)
	return list, err
}

// reasonOf is what is wrong, without the words that every AnswerError begins with.
func reasonOf(err error) string {
	var unclear *rpc.AnswerError
	if errors.As(err, &unclear) {
		return unclear.Reason
	}
	return err.Error()
}
