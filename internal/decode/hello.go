package decode

import (
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/rpc"
)

// Initialize decodes the result of initialize.
func Initialize(raw []byte) (*mcp.InitializeResult, error) {
	info, err := Into[mcp.InitializeResult](raw)
	if err != nil {
		return nil, err
	}
	switch {
	case info.ProtocolVersion == "":
		return nil, &rpc.AnswerError{Reason: "it names no protocolVersion"}
	case !mcp.IsValidProtocolVersion(info.ProtocolVersion):
		return nil, &rpc.AnswerError{Reason: "it is of a revision of the protocol that isn't known: " + clip(info.ProtocolVersion)}
	}
	return info, nil
}

// Discover decodes the result of server/discover. Versions are what the server
// supports; info is what initialize would have said, but for the version.
func Discover(raw []byte) (versions []string, info *mcp.InitializeResult, err error) {
	found, err := Into[struct {
		mcp.DiscoverResult
		ServerInfo *mcp.Implementation `json:"serverInfo"` // some have it here
	}](raw)
	if err != nil {
		return nil, nil, err
	}
	info = &mcp.InitializeResult{Result: found.Result, Capabilities: found.Capabilities, Instructions: found.Instructions}
	if server := found.GetResultMeta().ServerInfo(); server != nil {
		info.ServerInfo = *server
	} else if found.ServerInfo != nil {
		info.ServerInfo = *found.ServerInfo
	}
	return found.SupportedVersions, info, nil
}

// Supported returns the versions that a server names in the error with which it
// refuses one, see
// https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning.
func Supported(err *rpc.Error) []string {
	if err.Code != mcp.UNSUPPORTED_PROTOCOL_VERSION {
		return nil
	}
	var data mcp.UnsupportedProtocolVersionData
	_ = json.Unmarshal(err.Data, &data) // without data it names none
	return data.Supported
}

// NewestModern returns the newest modern revision among versions that is known, or
// "" if none is.
func NewestModern(versions []string) string {
	return mcp.NegotiateMutuallySupportedVersion(slices.DeleteFunc(slices.Clone(versions), func(v string) bool {
		return !mcp.IsModernProtocol(v)
	}))
}

// clip is what is quoted of a server's answer: all of a short text, since a part of a
// secret isn't known for one.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		return "(a long text)"
	}
	return s
}
