package langchaintools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/mcppool/mcppool/internal/looptest"
	"github.com/mcppool/mcppool/toolbox"
	"github.com/mcppool/mcppool/toolbox/langchaintools"
)

// The answers of the model: two calls, and the answer to what it sees.
var script = []string{
	`{"choices":[{"message":{"role":"assistant","tool_calls":[
		{"id":"call_1","type":"function","function":{"name":"mcp__camera__snapshot","arguments":"{\"room\":\"hall\"}"}},
		{"id":"call_2","type":"function","function":{"name":"mcp__camera__status","arguments":"{}"}}]}}]}`,
	`{"choices":[{"message":{"role":"assistant","content":"It is dark."}}]}`,
}

// ask is an agent loop: the model calls tools until it has an answer.
func ask(ctx context.Context, model llms.Model, box *toolbox.Box, question string) (string, error) {
	conv := toolbox.Conversation{Project: "house", Thread: "t7"}
	messages := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, question)}
	for range 10 {
		tools, err := box.ToolsFor(ctx, conv)
		if err != nil {
			return "", err
		}
		response, err := model.GenerateContent(ctx, messages, llms.WithTools(langchaintools.Tools(tools, toolbox.APIOpenAI)))
		if err != nil {
			return "", err
		}
		choice := response.Choices[0]
		calls := langchaintools.Calls(choice)
		if len(calls) == 0 {
			return choice.Content, nil
		}
		outs := box.DispatchAll(ctx, calls, conv)
		messages = append(messages, langchaintools.Message(choice))
		messages = append(messages, langchaintools.Results(calls, outs, toolbox.APIOpenAI)...)
	}
	return "", errors.New("no answer after 10 turns")
}

// A whole agent loop through langchaingo's client; the model is a script here.
func Example() {
	model := looptest.NewModel(script...)
	defer model.Close()
	box, done, err := looptest.Box() // toolbox.New, with a server that has a camera
	if err != nil {
		log.Fatal(err)
	}
	defer done()

	client, err := openai.New(openai.WithBaseURL(model.URL), openai.WithToken("key"), openai.WithHTTPClient(model.Client()))
	if err != nil {
		log.Fatal(err)
	}
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
	client, err := openai.New(openai.WithBaseURL(model.URL), openai.WithToken("key"), openai.WithHTTPClient(model.Client()))
	require.NoError(t, err)

	answer, err := ask(t.Context(), client, box, "Is the light on?")
	require.NoError(t, err)
	require.Equal(t, "It is dark.", answer)

	var sent []struct {
		Function struct {
			Name       string
			Parameters json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(model.Member(0, "tools"), &sent))
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
	require.NoError(t, json.Unmarshal(model.Member(1, "messages"), &messages))
	require.Len(t, messages, 5)
	require.Equal(t, "call_1", messages[2]["tool_call_id"])
	require.Equal(t, "picture 1, of hall, width <nil>\n[image: image/png, 8 bytes]", messages[2]["content"])
	require.Equal(t, "call_2", messages[3]["tool_call_id"])
	require.Equal(t, "Error: the lens is dirty", messages[3]["content"])
	images, err := json.Marshal(messages[4]["content"])
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"type":"text","text":"Image from mcp__camera__snapshot, call call_1:"},
		{"type":"image_url","image_url":{"url":"data:image/png;base64,`+looptest.PNG+`"}}]`, string(images))
}

func TestToolsAreWrittenForTheAPIThatTheModelIsOf(t *testing.T) {
	box, done, err := looptest.Box()
	require.NoError(t, err)
	defer done()
	set, err := box.Tools(t.Context())
	require.NoError(t, err)
	for _, api := range []toolbox.API{toolbox.APIOpenAI, toolbox.APIAnthropic, toolbox.APIGemini} {
		properties := langchaintools.Tools(set, api)[0].Function.Parameters.(map[string]any)["properties"].(map[string]any)
		_, own := properties["$width"]
		require.Equal(t, api == toolbox.APIOpenAI, own, "%s", api)
		require.NotNil(t, langchaintools.Tools(set, api)[1].Function.Parameters, "%s", api)
	}
}
