// Package genaitools connects a [toolbox.Box] with Google's genai SDK, for the Gemini API
// and Vertex AI: its tools, calls and results as those of generateContent.
//
//	tool, err := genaitools.Tool(tools)
//	config.Tools = []*genai.Tool{tool}
//	...
//	calls := genaitools.Calls(response)
//	outs := box.DispatchAll(ctx, calls, conv)
//	contents = append(contents, response.Candidates[0].Content, genaitools.Results(calls, outs))
package genaitools

import (
	"encoding/json"
	"fmt"

	"google.golang.org/genai"

	"github.com/mcppool/mcppool/toolbox"
)

// Tool has the tools of a set as its declarations, as [toolbox.ToolSet.Gemini] writes
// them. It is nil when there are none, which the API refuses. It fails, and names the
// tool, when the SDK can't hold one of them.
func Tool(set *toolbox.ToolSet) (*genai.Tool, error) {
	var tool genai.Tool
	for _, declaration := range set.Gemini() {
		f := new(genai.FunctionDeclaration)
		b, err := json.Marshal(declaration)
		if err == nil {
			err = json.Unmarshal(b, f)
		}
		if err != nil {
			return nil, fmt.Errorf("genaitools: tool %v: %w", declaration["name"], err)
		}
		tool.FunctionDeclarations = append(tool.FunctionDeclarations, f)
	}
	if tool.FunctionDeclarations == nil {
		return nil, nil //nolint:nilnil // no tools are no fault
	}
	return &tool, nil
}

// Calls are the calls of a response, for [toolbox.Box.DispatchAll].
func Calls(response *genai.GenerateContentResponse) []toolbox.ToolCall {
	var calls []toolbox.ToolCall
	for _, c := range response.FunctionCalls() {
		args, err := json.Marshal(c.Args)
		if err != nil {
			args = []byte("!") // nothing that came as JSON; the model is told that it isn't any
		}
		if c.Args == nil {
			args = nil
		}
		calls = append(calls, toolbox.ToolCall{ID: c.ID, Name: c.Name, Args: args})
	}
	return calls
}

// Results is the content that answers the calls, with their images. The outputs are
// those of the calls, in the same order. Images within results are for Gemini 3 and
// later; take them out of the outputs for others, and of any that the model isn't to see.
func Results(calls []toolbox.ToolCall, outs []toolbox.Output) *genai.Content {
	content := &genai.Content{Role: genai.RoleUser}
	for i, out := range outs {
		key := "output"
		if out.IsError {
			key = "error"
		}
		response := &genai.FunctionResponse{ID: calls[i].ID, Name: calls[i].Name, Response: map[string]any{key: out.Text}}
		for _, image := range out.Images {
			if accepted[image.MIMEType] {
				response.Parts = append(response.Parts, genai.NewFunctionResponsePartFromBytes(image.Data, image.MIMEType))
			}
		}
		content.Parts = append(content.Parts, &genai.Part{FunctionResponse: response})
	}
	return content
}

// accepted are the images that the API takes; a text says of the others that they were there.
var accepted = map[string]bool{"image/png": true, "image/jpeg": true, "image/webp": true}
