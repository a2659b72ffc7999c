package toolresult

import (
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/decode"
	"github.com/mcppool/mcppool/internal/jsonscan"
)

// decodeBlock reads one content block. Its error, if the block is valid JSON,
// is mcp-go's.
func decodeBlock(s *jsonscan.Scanner) (mcp.Content, error) {
	mark := *s
	if block := commonBlock(s); block != nil {
		return block, nil
	}
	*s = mark
	raw := s.Skip()
	if err := s.Err(); err != nil {
		return nil, err
	}
	return mcp.UnmarshalContent(raw)
}

// commonBlock reads a block of text, image, audio or resource that has no
// surprises; otherwise it returns nil, and s is anywhere. Of a member that
// occurs twice the last one counts, as in encoding/json.
func commonBlock(s *jsonscan.Scanner) mcp.Content {
	var (
		typ, text, data, mimeType jsonscan.String
		meta                      *mcp.Meta
		annotated                 mcp.Annotated
		resource                  mcp.ResourceContents
	)
	s.Enter('{')
	for key, more := s.Key(); more; key, more = s.Key() {
		ok := true
		switch string(key.Body) {
		case "type":
			typ = s.String()
		case "text":
			text = s.String()
		case "data":
			data = s.String()
		case "mimeType":
			mimeType = s.String()
		case "_meta":
			meta, ok = decode.Meta(s.Skip())
		case "annotations":
			if annotated.Annotations != nil {
				return nil // encoding/json merges the two
			}
			annotated.Annotations, ok = unmarshal[mcp.Annotations](s.Skip())
		case "resource":
			resource = commonResource(s)
			ok = resource != nil
		default:
			return nil
		}
		if !ok {
			return nil
		}
	}
	if s.Err() != nil {
		return nil
	}
	switch string(typ.Body) {
	case mcp.ContentTypeText:
		return mcp.TextContent{Annotated: annotated, Meta: meta, Type: mcp.ContentTypeText, Text: text.Decode()}
	case mcp.ContentTypeImage:
		return mcp.ImageContent{Annotated: annotated, Meta: meta, Type: mcp.ContentTypeImage, Data: data.Decode(), MIMEType: decodeMIMEType(mimeType)}
	case mcp.ContentTypeAudio:
		return mcp.AudioContent{Annotated: annotated, Meta: meta, Type: mcp.ContentTypeAudio, Data: data.Decode(), MIMEType: decodeMIMEType(mimeType)}
	case mcp.ContentTypeResource:
		if resource != nil {
			return mcp.EmbeddedResource{Annotated: annotated, Meta: meta, Type: mcp.ContentTypeResource, Resource: resource}
		}
	}
	return nil
}

// commonResource reads the resource of an embedded resource, like commonBlock.
func commonResource(s *jsonscan.Scanner) mcp.ResourceContents {
	var uri, mimeType, text, blob jsonscan.String
	var hasText, hasBlob bool
	s.Enter('{')
	for key, more := s.Key(); more; key, more = s.Key() {
		switch string(key.Body) {
		case "uri":
			uri = s.String()
		case "mimeType":
			mimeType = s.String()
		case "text":
			text, hasText = s.String(), true
		case "blob":
			blob, hasBlob = s.String(), true
		default:
			return nil
		}
	}
	switch {
	case s.Err() != nil || len(uri.Body) == 0:
		return nil
	case hasText: // counts even next to a blob
		return mcp.TextResourceContents{URI: uri.Decode(), MIMEType: decodeMIMEType(mimeType), Text: text.Decode()}
	case hasBlob:
		return mcp.BlobResourceContents{URI: uri.Decode(), MIMEType: decodeMIMEType(mimeType), Blob: blob.Decode()}
	}
	return nil
}

// decodeMIMEType allocates nothing for the types that are common.
func decodeMIMEType(s jsonscan.String) string {
	switch string(s.Body) {
	case "":
		return ""
	case "image/png":
		return "image/png"
	case "image/jpeg":
		return "image/jpeg"
	case "image/webp":
		return "image/webp"
	case "audio/wav":
		return "audio/wav"
	case "audio/mpeg":
		return "audio/mpeg"
	case "text/plain":
		return "text/plain"
	case "application/json":
		return "application/json"
	}
	return s.Decode()
}
