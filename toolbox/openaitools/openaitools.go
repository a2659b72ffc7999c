// Package openaitools connects a [toolbox.Box] with OpenAI's official Go SDK: its tools,
// calls and results as those of the chat completions API.
//
//	params.Tools = openaitools.Tools(tools)
//	...
//	message := completion.Choices[0].Message
//	calls := openaitools.Calls(message)
//	outs := box.DispatchAll(ctx, calls, conv)
//	params.Messages = append(params.Messages, message.ToParam())
//	params.Messages = append(params.Messages, openaitools.Results(calls, outs)...)
package openaitools

import (
	"encoding/base64"
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/mcppool/mcppool/toolbox"
)

// Tools are the tools of a set for a request, as [toolbox.ToolSet.OpenAI] writes them.
func Tools(set *toolbox.ToolSet) []openai.ChatCompletionToolUnionParam {
	all := set.OpenAI()
	params := make([]openai.ChatCompletionToolUnionParam, len(all))
	for i, tool := range all {
		function, _ := tool["function"].(map[string]any)
		def := shared.FunctionDefinitionParam{}
		def.Name, _ = function["name"].(string)
		schema, _ := function["parameters"].(map[string]any)
		def.Parameters = encoded(schema)
		if text, ok := function["description"].(string); ok {
			def.Description = openai.String(text)
		}
		params[i] = openai.ChatCompletionFunctionTool(def)
	}
	return params
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

// Calls are the calls of a message, for [toolbox.Box.DispatchAll]. Those of custom tools
// aren't the box's and aren't among them.
func Calls(message openai.ChatCompletionMessage) []toolbox.ToolCall {
	var calls []toolbox.ToolCall
	for _, c := range message.ToolCalls {
		if c.Type == "custom" {
			continue
		}
		calls = append(calls, toolbox.ToolCall{
			ID: c.ID, Name: c.Function.Name, Args: json.RawMessage(c.Function.Arguments),
		})
	}
	return calls
}

// Results are the messages that answer the calls: one for each, and one with the images
// of all, since the API takes text alone as a result. The outputs are those of the
// calls, in the same order; take out the images of any that the model isn't to see.
func Results(calls []toolbox.ToolCall, outs []toolbox.Output) []openai.ChatCompletionMessageParamUnion {
	var messages []openai.ChatCompletionMessageParamUnion
	var images []openai.ChatCompletionContentPartUnionParam
	for i, out := range outs {
		messages = append(messages, openai.ToolMessage(out.Text, calls[i].ID))
		for _, image := range out.Images {
			if !accepted[image.MIMEType] {
				continue
			}
			images = append(images,
				openai.TextContentPart("Image from "+calls[i].Name+", call "+calls[i].ID+":"),
				openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{
					URL: "data:" + image.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(image.Data),
				}))
		}
	}
	if len(images) > 0 {
		messages = append(messages, openai.UserMessage(images))
	}
	return messages
}

// accepted are the images that the API takes; a text says of the others that they were there.
var accepted = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}
