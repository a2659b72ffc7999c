// Package langchaintools connects a [toolbox.Box] with langchaingo: its tools, calls and
// results as those of its llms package.
//
//	llms.WithTools(langchaintools.Tools(tools, toolbox.APIOpenAI))
//	...
//	choice := response.Choices[0]
//	calls := langchaintools.Calls(choice)
//	outs := box.DispatchAll(ctx, calls, conv)
//	messages = append(messages, langchaintools.Message(choice))
//	messages = append(messages, langchaintools.Results(calls, outs, toolbox.APIOpenAI)...)
package langchaintools

import (
	"encoding/base64"
	"encoding/json"

	"github.com/tmc/langchaingo/llms"

	"github.com/mcppool/mcppool/toolbox"
)

// Tools are the tools of a set for [llms.WithTools]. The API is that of the model, since
// each refuses other schemas.
func Tools(set *toolbox.ToolSet, api toolbox.API) []llms.Tool {
	var tools []llms.Tool
	add := func(function map[string]any, parameters string) {
		def := &llms.FunctionDefinition{Parameters: function[parameters]}
		def.Name, _ = function["name"].(string)
		def.Description, _ = function["description"].(string)
		if def.Parameters == nil { // as for Gemini, where langchaingo wants a schema all the same
			def.Parameters = map[string]any{"type": "object", "properties": map[string]any{}}
		}
		tools = append(tools, llms.Tool{Type: "function", Function: def})
	}
	switch api {
	case toolbox.APIAnthropic:
		for _, t := range set.Anthropic() {
			add(t, "input_schema")
		}
	case toolbox.APIGemini:
		for _, t := range set.Gemini() {
			add(t, "parameters")
		}
	default:
		for _, t := range set.OpenAI() {
			function, _ := t["function"].(map[string]any)
			add(function, "parameters")
		}
	}
	return tools
}

// Calls are the calls of a model's answer, for [toolbox.Box.DispatchAll].
func Calls(choice *llms.ContentChoice) []toolbox.ToolCall {
	var calls []toolbox.ToolCall
	for _, c := range choice.ToolCalls {
		if c.FunctionCall == nil {
			continue
		}
		calls = append(calls, toolbox.ToolCall{
			ID: c.ID, Name: c.FunctionCall.Name, Args: json.RawMessage(c.FunctionCall.Arguments),
		})
	}
	return calls
}

// Message is a model's answer with its calls, as the next request has it.
func Message(choice *llms.ContentChoice) llms.MessageContent {
	message := llms.MessageContent{Role: llms.ChatMessageTypeAI}
	if choice.Content != "" {
		message.Parts = append(message.Parts, llms.TextPart(choice.Content))
	}
	for _, c := range choice.ToolCalls {
		message.Parts = append(message.Parts, c)
	}
	return message
}

// Results are the messages that answer the calls: one for each, and one with the images
// of all, since langchaingo has text alone as a result. The outputs are those of the
// calls, in the same order; take out the images of any that the model isn't to see, and
// all for a model that takes none. The API is that of the model, as for [Tools].
func Results(calls []toolbox.ToolCall, outs []toolbox.Output, api toolbox.API) []llms.MessageContent {
	var messages []llms.MessageContent
	var images []llms.ContentPart
	for i, out := range outs {
		messages = append(messages, llms.MessageContent{
			Role:  llms.ChatMessageTypeTool,
			Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: calls[i].ID, Name: calls[i].Name, Content: out.Text}},
		})
		for _, image := range out.Images {
			if accepted[image.MIMEType] {
				images = append(images, llms.TextPart("Image from "+calls[i].Name+", call "+calls[i].ID+":"), part(image, api))
			}
		}
	}
	if images != nil {
		messages = append(messages, llms.MessageContent{Role: llms.ChatMessageTypeHuman, Parts: images})
	}
	return messages
}

// part is an image as langchaingo's client of the API sends it: that of OpenAI sends a
// BinaryContent in a way that the API doesn't know, and the others fetch an
// ImageURLContent, or refuse it.
func part(image toolbox.Media, api toolbox.API) llms.ContentPart {
	if api == toolbox.APIAnthropic || api == toolbox.APIGemini {
		return llms.BinaryPart(image.MIMEType, image.Data)
	}
	return llms.ImageURLPart("data:" + image.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(image.Data))
}

// accepted are the images that all take who take any; a text says of the others that they were there.
var accepted = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}
