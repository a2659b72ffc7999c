// Package einotools connects a [toolbox.Box] with eino: its tools, calls and results as
// those of its schema package.
//
//	infos, err := einotools.Tools(tools, toolbox.APIOpenAI)
//	chat, err := model.WithTools(infos)
//	...
//	calls := einotools.Calls(message)
//	outs := box.DispatchAll(ctx, calls, conv)
//	messages = append(messages, message)
//	messages = append(messages, einotools.Results(calls, outs)...)
package einotools

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"

	"github.com/mcppool/mcppool/toolbox"
)

// Tools are the tools of a set for a model's WithTools. The API is that of the model,
// since each refuses other schemas. It fails, and names the tool, when eino can't hold
// the schema of one of them.
func Tools(set *toolbox.ToolSet, api toolbox.API) ([]*schema.ToolInfo, error) {
	all, parameters := set.OpenAI, "parameters"
	switch api {
	case toolbox.APIAnthropic:
		all, parameters = set.Anthropic, "input_schema"
	case toolbox.APIGemini:
		all = set.Gemini
	}
	var infos []*schema.ToolInfo
	for _, tool := range all() {
		if function, ok := tool["function"].(map[string]any); ok {
			tool = function
		}
		info := &schema.ToolInfo{}
		info.Name, _ = tool["name"].(string)
		info.Desc, _ = tool["description"].(string)
		if tool[parameters] != nil {
			params, err := paramsOf(tool[parameters])
			if err != nil {
				return nil, fmt.Errorf("einotools: tool %s: %w", info.Name, err)
			}
			info.ParamsOneOf = params
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func paramsOf(of any) (*schema.ParamsOneOf, error) {
	b, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, err
	}
	return schema.NewParamsOneOfByJSONSchema(s), nil
}

// Calls are the calls of a model's message, for [toolbox.Box.DispatchAll].
func Calls(message *schema.Message) []toolbox.ToolCall {
	var calls []toolbox.ToolCall
	for _, c := range message.ToolCalls {
		calls = append(calls, toolbox.ToolCall{
			ID: c.ID, Name: c.Function.Name, Args: json.RawMessage(c.Function.Arguments),
		})
	}
	return calls
}

// Results are the messages that answer the calls: one for each, and one with the images
// of all, since few models take them within a result. The outputs are those of the
// calls, in the same order; take out the images of any that the model isn't to see, and
// all for a model that takes none.
func Results(calls []toolbox.ToolCall, outs []toolbox.Output) []*schema.Message {
	var messages []*schema.Message
	var images []schema.MessageInputPart
	for i, out := range outs {
		messages = append(messages, schema.ToolMessage(out.Text, calls[i].ID, schema.WithToolName(calls[i].Name)))
		for _, image := range out.Images {
			if !accepted[image.MIMEType] {
				continue
			}
			data := base64.StdEncoding.EncodeToString(image.Data)
			images = append(images,
				schema.MessageInputPart{Type: schema.ChatMessagePartTypeText, Text: "Image from " + calls[i].Name + ", call " + calls[i].ID + ":"},
				schema.MessageInputPart{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{
					MessagePartCommon: schema.MessagePartCommon{Base64Data: &data, MIMEType: image.MIMEType},
				}})
		}
	}
	if images != nil {
		messages = append(messages, &schema.Message{Role: schema.User, UserInputMultiContent: images})
	}
	return messages
}

// accepted are the images that all take who take any; a text says of the others that they were there.
var accepted = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}
