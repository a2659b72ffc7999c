package anthropictools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/looptest"
	"github.com/mcppool/mcppool/toolbox"
	"github.com/mcppool/mcppool/toolbox/anthropictools"
)

// The answers of the model: two calls,
// and the answer to what it sees.
var script = []string{
	`{"type":"message","role":"assistant","stop_reason":"tool_use","content":[
		{"type":"text","text":"I look."},
		{"type":"tool_use","id":"call_1","name":"mcp__camera__snapshot","input":{"room":"hall"}},
		{"type":"tool_use","id":"call_2","name":"mcp__camera__status","input":{}}]}`,
	`{"type":"message","role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"It is dark."}]}`,
}

// ask is an agent loop: the model calls tools until it has an answer.
func ask(ctx context.Context, client anthropic.Client, box *toolbox.Box, question string) (string, error) {
	conv := toolbox.Conversation{Project: "house", Thread: "t7"}
	params := anthropic.MessageNewParams{
		Model:     "claude-sonnet-4-5",
		MaxTokens: 1024,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))},
	}
	for range 10 {
		tools, err := box.ToolsFor(ctx, conv)
		if err != nil {
			return "", err
		}
		params.Tools = anthropictools.Tools(tools)
		message, err := client.Messages.New(ctx, params)
		if err != nil {
			return "", err
		}
		calls := anthropictools.Calls(message)
		if len(calls) == 0 {
			return message.Content[0].Text, nil
		}
		outs := box.DispatchAll(ctx, calls, conv)
		params.Messages = append(params.Messages, message.ToParam(), anthropictools.Results(calls, outs))
	}
	return "", fmt.Errorf("no answer after 10 turns")
}

// A whole agent loop through the SDK's client; the model is a script here.
func Example() {
	model := looptest.NewModel(script...)
	defer model.Close()
	box, done, err := looptest.Box() // toolbox.New, with a server that has a camera
	if err != nil {
		log.Fatal(err)
	}
	defer done()

	client := anthropic.NewClient(option.WithBaseURL(model.URL), option.WithAPIKey("key"))
	answer, err := ask(context.Background(), client, box, "Is the light on in the hall?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
	// Output: It is dark.
}

func TestALoopSendsToolsAndResultsAsTheAPIWantsThem(t *testing.T) {
	model := looptest.NewModel(script...)
	defer model.Close()
	box, done, err := looptest.Box()
	require.NoError(t, err)
	defer done()
	client := anthropic.NewClient(option.WithBaseURL(model.URL), option.WithAPIKey("key"), option.WithHTTPClient(model.Client()))

	answer, err := ask(t.Context(), client, box, "Is the light on?")
	require.NoError(t, err)
	require.Equal(t, "It is dark.", answer)

	set, err := box.Tools(t.Context())
	require.NoError(t, err)
	want, err := json.Marshal(set.Anthropic())
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(model.Member(0, "tools")), "the tools are sent as toolbox writes them")
	require.JSONEq(t, `[
		{"role":"user","content":[{"type":"text","text":"Is the light on?"}]},
		{"role":"assistant","content":[
			{"type":"text","text":"I look."},
			{"type":"tool_use","id":"call_1","name":"mcp__camera__snapshot","input":{"room":"hall"}},
			{"type":"tool_use","id":"call_2","name":"mcp__camera__status","input":{}}]},
		{"role":"user","content":[
			{"type":"tool_result","tool_use_id":"call_1","is_error":false,"content":[
				{"type":"text","text":"picture 1, of hall, width <nil>\n[image: image/png, 8 bytes]"},
				{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+looptest.PNG+`"}}]},
			{"type":"tool_result","tool_use_id":"call_2","is_error":true,"content":[
				{"type":"text","text":"Error: the lens is dirty"}]}]}
	]`, string(model.Member(1, "messages")))
}

func TestImagesThatTheAPIRefusesStayOut(t *testing.T) {
	out := toolbox.Output{Content: toolbox.Content{Text: "x", Images: []toolbox.Media{{MIMEType: "image/avif", Data: []byte("x")}}}}
	message := anthropictools.Results([]toolbox.ToolCall{{ID: "1"}}, []toolbox.Output{out})
	require.Len(t, message.Content[0].OfToolResult.Content, 1)
}
