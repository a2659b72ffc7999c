package einotools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/looptest"
	"github.com/mcppool/mcppool/toolbox"
	"github.com/mcppool/mcppool/toolbox/einotools"
)

// The answers of the model: two calls, and the answer to what it sees.
var script = []string{
	`{"choices":[{"message":{"role":"assistant","tool_calls":[
		{"id":"call_1","type":"function","function":{"name":"mcp__camera__snapshot","arguments":"{\"room\":\"hall\"}"}},
		{"id":"call_2","type":"function","function":{"name":"mcp__camera__status","arguments":"{}"}}]}}]}`,
	`{"choices":[{"message":{"role":"assistant","content":"It is dark."}}]}`,
}

// ask is an agent loop: the model calls tools until it has an answer.
func ask(ctx context.Context, chat model.ToolCallingChatModel, box *toolbox.Box, question string) (string, error) {
	conv := toolbox.Conversation{Project: "house", Thread: "t7"}
	messages := []*schema.Message{schema.UserMessage(question)}
	for range 10 {
		tools, err := box.ToolsFor(ctx, conv)
		if err != nil {
			return "", err
		}
		infos, err := einotools.Tools(tools, toolbox.APIOpenAI)
		if err != nil {
			return "", err
		}
		withTools, err := chat.WithTools(infos)
		if err != nil {
			return "", err
		}
		message, err := withTools.Generate(ctx, messages)
		if err != nil {
			return "", err
		}
		calls := einotools.Calls(message)
		if len(calls) == 0 {
			return message.Content, nil
		}
		outs := box.DispatchAll(ctx, calls, conv)
		messages = append(messages, message)
		messages = append(messages, einotools.Results(calls, outs)...)
	}
	return "", errors.New("no answer after 10 turns")
}

func newChat(ctx context.Context, m *looptest.Model) (model.ToolCallingChatModel, error) {
	return openai.NewChatModel(ctx, &openai.ChatModelConfig{
		Model: "gpt-4o", APIKey: "key", BaseURL: m.URL, HTTPClient: m.Client(),
	})
}

// A whole agent loop through eino's client; the model is a script here.
func Example() {
	ctx := context.Background()
	m := looptest.NewModel(script...)
	defer m.Close()
	box, done, err := looptest.Box() // toolbox.New, with a server that has a camera
	if err != nil {
		log.Fatal(err)
	}
	defer done()

	chat, err := newChat(ctx, m)
	if err != nil {
		log.Fatal(err)
	}
	answer, err := ask(ctx, chat, box, "Is the light on in the hall?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
	// Output: It is dark.
}

func TestALoopSendsToolsAndResultsAsTheAPIWantsThem(t *testing.T) {
	m := looptest.NewModel(script...)
	defer m.Close()
	box, done, err := looptest.Box()
	require.NoError(t, err)
	defer done()
	chat, err := newChat(t.Context(), m)
	require.NoError(t, err)

	answer, err := ask(t.Context(), chat, box, "Is the light on?")
	require.NoError(t, err)
	require.Equal(t, "It is dark.", answer)

	var sent []struct {
		Function struct{ Parameters json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(m.Member(0, "tools"), &sent))
	set, err := box.Tools(t.Context())
	require.NoError(t, err)
	require.Len(t, sent, len(set.Tools))
	for i, tool := range set.OpenAI() {
		function, _ := tool["function"].(map[string]any)
		want, err := json.Marshal(function["parameters"])
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(sent[i].Function.Parameters), "the schema is sent as toolbox writes it")
	}

	var messages []map[string]any
	require.NoError(t, json.Unmarshal(m.Member(1, "messages"), &messages))
	require.Len(t, messages, 5)
	require.Equal(t, "call_1", messages[2]["tool_call_id"])
	require.Equal(t, "picture 1, of hall, width <nil>\n[image: image/png, 8 bytes]", messages[2]["content"])
	require.Equal(t, "call_2", messages[3]["tool_call_id"])
	require.Equal(t, "Error: the lens is dirty", messages[3]["content"])
	images, err := json.Marshal(messages[4]["content"])
	require.NoError(t, err)
	require.Contains(t, string(images), "data:image/png;base64,"+looptest.PNG)
}
