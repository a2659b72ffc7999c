package openaitools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/looptest"
	"github.com/mcppool/mcppool/toolbox"
	"github.com/mcppool/mcppool/toolbox/openaitools"
)

// The answers of the model: two pictures, and the answer to what it sees.
var script = []string{
	`{"choices":[{"message":{"role":"assistant","tool_calls":[
		{"id":"call_1","type":"function","function":{"name":"mcp__camera__snapshot","arguments":"{\"room\":\"hall\",\"$width\":640}"}},
		{"id":"call_2","type":"function","function":{"name":"mcp__camera__status","arguments":"{}"}}]}}]}`,
	`{"choices":[{"message":{"role":"assistant","content":"It is dark."}}]}`,
}

// ask is an agent loop: the model calls tools until it has an answer.
func ask(ctx context.Context, client openai.Client, box *toolbox.Box, question string) (string, error) {
	conv := toolbox.Conversation{Project: "house", Thread: "t7"}
	params := openai.ChatCompletionNewParams{
		Model:    openai.ChatModelGPT4o,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)},
	}
	for range 10 {
		tools, err := box.ToolsFor(ctx, conv)
		if err != nil {
			return "", err
		}
		params.Tools = openaitools.Tools(tools)
		completion, err := client.Chat.Completions.New(ctx, params)
		if err != nil {
			return "", err
		}
		message := completion.Choices[0].Message
		calls := openaitools.Calls(message)
		if len(calls) == 0 {
			return message.Content, nil
		}
		outs := box.DispatchAll(ctx, calls, conv)
		params.Messages = append(params.Messages, message.ToParam())
		params.Messages = append(params.Messages, openaitools.Results(calls, outs)...)
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

	client := openai.NewClient(option.WithBaseURL(model.URL), option.WithAPIKey("key"))
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
	client := openai.NewClient(option.WithBaseURL(model.URL), option.WithAPIKey("key"), option.WithHTTPClient(model.Client()))

	answer, err := ask(t.Context(), client, box, "Is the light on?")
	require.NoError(t, err)
	require.Equal(t, "It is dark.", answer)

	set, err := box.Tools(t.Context())
	require.NoError(t, err)
	want, err := json.Marshal(set.OpenAI())
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(model.Member(0, "tools")), "the tools are sent as toolbox writes them")
	require.JSONEq(t, `[
		{"role":"user","content":"Is the light on?"},
		{"role":"assistant","tool_calls":[
			{"id":"call_1","type":"function","function":{"name":"mcp__camera__snapshot","arguments":"{\"room\":\"hall\",\"$width\":640}"}},
			{"id":"call_2","type":"function","function":{"name":"mcp__camera__status","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"call_1","content":"picture 1, of hall, width 640\n[image: image/png, 8 bytes]"},
		{"role":"tool","tool_call_id":"call_2","content":"Error: the lens is dirty"},
		{"role":"user","content":[
			{"type":"text","text":"Image from mcp__camera__snapshot, call call_1:"},
			{"type":"image_url","image_url":{"url":"data:image/png;base64,`+looptest.PNG+`"}}]}
	]`, string(model.Member(1, "messages")))
}

func TestCallsOfCustomToolsAreLeftToOthers(t *testing.T) {
	var message openai.ChatCompletionMessage
	require.NoError(t, json.Unmarshal([]byte(`{"role":"assistant","tool_calls":[
		{"id":"1","type":"custom","custom":{"name":"mine","input":"x"}},
		{"id":"2","type":"function","function":{"name":"mcp__a__b","arguments":""}}]}`), &message))
	require.Equal(t, []toolbox.ToolCall{{ID: "2", Name: "mcp__a__b", Args: json.RawMessage("")}}, openaitools.Calls(message))
}

func TestImagesThatTheAPIRefusesStayOut(t *testing.T) {
	out := toolbox.Output{Content: toolbox.Content{Text: "x", Images: []toolbox.Media{{MIMEType: "image/avif", Data: []byte("x")}}}}
	require.Len(t, openaitools.Results([]toolbox.ToolCall{{ID: "1"}}, []toolbox.Output{out}), 1)
}
