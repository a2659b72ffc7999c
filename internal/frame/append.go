package frame

import (
	"strconv"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

// The Append functions append one message as one line, its line end included.
// They take raw JSON as valid: line breaks between its tokens become spaces.

// AppendRequest appends a request; params may be nil.
func AppendRequest(dst []byte, id int64, method string, params []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = strconv.AppendInt(dst, id, 10)
	dst = append(dst, `,"method":`...)
	return appendMethod(dst, method, params)
}

// AppendNotification appends a notification; params may be nil.
func AppendNotification(dst []byte, method string, params []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":`...)
	return appendMethod(dst, method, params)
}

func appendMethod(dst []byte, method string, params []byte) []byte {
	dst = jsonscan.AppendString(dst, method)
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = jsonscan.AppendLine(dst, params)
	}
	return append(dst, "}\n"...)
}

// ToolCall is the params of a tools/call, whose raw JSON may be nil.
type ToolCall struct {
	Name string
	Args []byte // nil is sent as {}, since there are servers that refuse a call without
	Meta []byte // the object "_meta"
	More []byte // further members, without the braces
}

// AppendToolCall appends a tools/call request.
func AppendToolCall(dst []byte, id int64, call ToolCall) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = strconv.AppendInt(dst, id, 10)
	dst = append(dst, `,"method":"tools/call","params":{"name":`...)
	dst = jsonscan.AppendString(dst, call.Name)
	dst = append(dst, `,"arguments":`...)
	if call.Args == nil {
		dst = append(dst, "{}"...)
	} else {
		dst = jsonscan.AppendLine(dst, call.Args)
	}
	if call.Meta != nil {
		dst = append(dst, `,"_meta":`...)
		dst = jsonscan.AppendLine(dst, call.Meta)
	}
	if call.More != nil {
		dst = append(dst, ',')
		dst = jsonscan.AppendLine(dst, call.More)
	}
	return append(dst, "}}\n"...)
}

// AppendResult appends the answer to the request whose id stood as rawID on
// its line; nil is sent as null.
func AppendResult(dst, rawID, result []byte) []byte {
	dst = appendAnswer(dst, rawID)
	dst = append(dst, `,"result":`...)
	dst = jsonscan.AppendLine(dst, result)
	return append(dst, "}\n"...)
}

// AppendError appends an error as the answer to the request whose id stood as
// rawID on its line; a nil rawID is sent as null. Data may be nil.
func AppendError(dst, rawID []byte, code int, message string, data []byte) []byte {
	dst = appendAnswer(dst, rawID)
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, `,"message":`...)
	dst = jsonscan.AppendString(dst, message)
	if data != nil {
		dst = append(dst, `,"data":`...)
		dst = jsonscan.AppendLine(dst, data)
	}
	return append(dst, "}}\n"...)
}

func appendAnswer(dst, rawID []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if rawID == nil {
		return append(dst, "null"...)
	}
	return jsonscan.AppendLine(dst, rawID)
}
