package toolresult

import (
	"github.com/mark3labs/mcp-go/mcp"

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

// blockMembers is the set of members that a block has had so far.
type blockMembers uint8

const (
	blockType blockMembers = 1 << iota
	blockText
	blockData
	blockMIMEType
	blockMeta
	blockAnnotations
	blockResource
)

// commonBlock reads a block of text, image, audio or resource that has no
// surprises; otherwise it returns nil, and s is anywhere.
func commonBlock(s *jsonscan.Scanner) mcp.Content {
	if !s.Enter('{') {
		return nil
	}
	var (
		typ, text, data, mimeType jsonscan.String
		meta                      *mcp.Meta
		annotations               *mcp.Annotations
		resource                  mcp.ResourceContents
		seen                      blockMembers
	)
	for key, more := s.Key(); more; key, more = s.Key() {
		var bit blockMembers
		var ok bool
		switch string(key.Body) {
		case "type":
			bit, ok = blockType, plainString(s, &typ) && typ.Plain()
		case "text":
			bit, ok = blockText, plainString(s, &text)
		case "data":
			bit, ok = blockData, plainString(s, &data)
		case "mimeType":
			bit, ok = blockMIMEType, plainString(s, &mimeType)
		case "_meta":
			bit = blockMeta
			meta, ok = unmarshal[mcp.Meta](s.Skip())
		case "annotations":
			bit = blockAnnotations
			annotations, ok = unmarshal[mcp.Annotations](s.Skip())
		case "resource":
			bit = blockResource
			resource = commonResource(s)
			ok = resource != nil
		default:
			return nil
		}
		if !ok || seen&bit != 0 {
			return nil
		}
		seen |= bit
	}
	if s.Err() != nil {
		return nil
	}
	annotated := mcp.Annotated{Annotations: annotations}
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

// commonResource reads the resource of an embedded resource.
func commonResource(s *jsonscan.Scanner) mcp.ResourceContents {
	if s.Peek() != '{' {
		return nil
	}
	s.Enter('{')
	const (
		hasURI = 1 << iota
		hasMIMEType
		hasText
		hasBlob
	)
	var uri, mimeType, text, blob jsonscan.String
	seen := 0
	for key, more := s.Key(); more; key, more = s.Key() {
		var bit int
		var ok bool
		switch string(key.Body) {
		case "uri":
			bit, ok = hasURI, plainString(s, &uri)
		case "mimeType":
			bit, ok = hasMIMEType, plainString(s, &mimeType)
		case "text":
			bit, ok = hasText, plainString(s, &text)
		case "blob":
			bit, ok = hasBlob, plainString(s, &blob)
		default:
			return nil
		}
		if !ok || seen&bit != 0 {
			return nil
		}
		seen |= bit
	}
	switch {
	case s.Err() != nil || len(uri.Body) == 0:
		return nil
	case seen&hasText != 0: // counts even next to a blob
		return mcp.TextResourceContents{URI: uri.Decode(), MIMEType: decodeMIMEType(mimeType), Text: text.Decode()}
	case seen&hasBlob != 0:
		return mcp.BlobResourceContents{URI: uri.Decode(), MIMEType: decodeMIMEType(mimeType), Blob: blob.Decode()}
	}
	return nil
}

// plainString reads a string, if the next value is one.
func plainString(s *jsonscan.Scanner, str *jsonscan.String) bool {
	if s.Peek() != '"' {
		return false
	}
	*str = s.String()
	return true
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
