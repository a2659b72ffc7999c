// Package anthropictools connects a [toolbox.Box] with Anthropic's official Go SDK: its
// tools, calls and results as those of the messages API.
//
//	params.Tools = anthropictools.Tools(tools)
//	...
//	calls := anthropictools.Calls(message)
//	outs := box.DispatchAll(ctx, calls, conv)
//	params.Messages = append(params.Messages, message.ToParam(), anthropictools.Results(calls, outs))
package anthropictools

import (
	"encoding/base64"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/mcppool/mcppool/toolbox"
)

// Tools are the tools of a set for a request, as [toolbox.ToolSet.Anthropic] writes them.
func Tools(set *toolbox.ToolSet) []anthropic.ToolUnionParam {
	all := set.Anthropic()
	params := make([]anthropic.ToolUnionParam, len(all))
	for i, tool := range all {
		p := &anthropic.ToolParam{}
		p.Name, _ = tool["name"].(string)
		if text, ok := tool["description"].(string); ok {
			p.Description = anthropic.String(text)
		}
		schema, _ := tool["input_schema"].(map[string]any)
		p.InputSchema = inputSchema(encoded(schema))
		params[i].OfTool = p
	}
	return params
}

// inputSchema takes a schema over, whatever members it has.
func inputSchema(schema map[string]any) anthropic.ToolInputSchemaParam {
	p := anthropic.ToolInputSchemaParam{Properties: schema["properties"], ExtraFields: make(map[string]any)}
	for member, value := range schema {
		if member != "type" && member != "properties" { // which is always "object"
			p.ExtraFields[member] = value
		}
	}
	return p
}

// encoded returns the members of a schema as JSON: the SDK writes a json.Number that
// stands in a map as a text.
func encoded(schema map[string]any) map[string]any {
	members := make(map[string]any, len(schema))
	for name, value := range schema {
		b, err := json.Marshal(value)
		if err != nil {
			panic("bug: " + err.Error()) // it came from JSON
		}
		members[name] = json.RawMessage(b)
	}
	return members
}

// Calls are the calls of a message, for [toolbox.Box.DispatchAll]. Those of tools that
// run at Anthropic aren't among them.
func Calls(message *anthropic.Message) []toolbox.ToolCall {
	var calls []toolbox.ToolCall
	for _, block := range message.Content {
		if block.Type == "tool_use" {
			calls = append(calls, toolbox.ToolCall{ID: block.ID, Name: block.Name, Args: block.Input})
		}
	}
	return calls
}

// Results is the message that answers the calls, with their images. The outputs are
// those of the calls, in the same order; take out the images of any that the model isn't
// to see.
func Results(calls []toolbox.ToolCall, outs []toolbox.Output) anthropic.MessageParam {
	blocks := make([]anthropic.ContentBlockParamUnion, len(outs))
	for i, out := range outs {
		blocks[i] = anthropic.NewToolResultBlock(calls[i].ID, out.Text, out.IsError)
		result := blocks[i].OfToolResult
		for _, image := range out.Images {
			if !accepted[image.MIMEType] {
				continue
			}
			block := anthropic.NewImageBlockBase64(image.MIMEType, base64.StdEncoding.EncodeToString(image.Data))
			result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{OfImage: block.OfImage})
		}
	}
	return anthropic.NewUserMessage(blocks...)
}

// accepted are the images that the API takes; a text says of the others that they were there.
var accepted = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}
