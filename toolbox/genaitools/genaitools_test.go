package genaitools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/mcppool/mcppool/internal/looptest"
	"github.com/mcppool/mcppool/toolbox"
	"github.com/mcppool/mcppool/toolbox/genaitools"
)

// The answers of the model: two calls, and the answer to what it sees.
var script = []string{
	`{"candidates":[{"content":{"role":"model","parts":[
		{"functionCall":{"id":"call_1","name":"mcp__camera__snapshot","args":{"room":"hall"}}},
		{"functionCall":{"id":"call_2","name":"mcp__camera__status"}}]}}]}`,
	`{"candidates":[{"content":{"role":"model","parts":[{"text":"It is dark."}]}}]}`,
}

// ask is an agent loop: the model calls tools until it has an answer.
func ask(ctx context.Context, client *genai.Client, box *toolbox.Box, question string) (string, error) {
	conv := toolbox.Conversation{Project: "house", Thread: "t7"}
	contents := genai.Text(question)
	for range 10 {
		tools, err := box.ToolsFor(ctx, conv)
		if err != nil {
			return "", err
		}
		tool, err := genaitools.Tool(tools)
		if err != nil {
			return "", err
		}
		config := &genai.GenerateContentConfig{Tools: []*genai.Tool{tool}}
		response, err := client.Models.GenerateContent(ctx, "gemini-3-flash", contents, config)
		if err != nil {
			return "", err
		}
		calls := genaitools.Calls(response)
		if len(calls) == 0 {
			return response.Text(), nil
		}
		outs := box.DispatchAll(ctx, calls, conv)
		contents = append(contents, response.Candidates[0].Content, genaitools.Results(calls, outs))
	}
	return "", errors.New("no answer after 10 turns")
}

func newClient(ctx context.Context, model *looptest.Model) (*genai.Client, error) {
	return genai.NewClient(ctx, &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: "key",
		HTTPClient: model.Client(), HTTPOptions: genai.HTTPOptions{BaseURL: model.URL},
	})
}

// A whole agent loop through the SDK's client; the model is a script here.
func Example() {
	ctx := context.Background()
	model := looptest.NewModel(script...)
	defer model.Close()
	box, done, err := looptest.Box() // toolbox.New, with a server that has a camera
	if err != nil {
		log.Fatal(err)
	}
	defer done()

	client, err := newClient(ctx, model)
	if err != nil {
		log.Fatal(err)
	}
	answer, err := ask(ctx, client, box, "Is the light on in the hall?")
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
	client, err := newClient(t.Context(), model)
	require.NoError(t, err)

	answer, err := ask(t.Context(), client, box, "Is the light on?")
	require.NoError(t, err)
	require.Equal(t, "It is dark.", answer)

	set, err := box.Tools(t.Context())
	require.NoError(t, err)
	want, err := json.Marshal([]any{map[string]any{"functionDeclarations": set.Gemini()}})
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(model.Member(0, "tools")), "the tools are sent as toolbox writes them")
	require.JSONEq(t, `[
		{"role":"user","parts":[{"text":"Is the light on?"}]},
		{"role":"model","parts":[
			{"functionCall":{"id":"call_1","name":"mcp__camera__snapshot","args":{"room":"hall"}}},
			{"functionCall":{"id":"call_2","name":"mcp__camera__status"}}]},
		{"role":"user","parts":[
			{"functionResponse":{"id":"call_1","name":"mcp__camera__snapshot",
				"response":{"output":"picture 1, of hall, width <nil>\n[image: image/png, 8 bytes]"},
				"parts":[{"inlineData":{"mimeType":"image/png","data":"`+looptest.PNG+`"}}]}},
			{"functionResponse":{"id":"call_2","name":"mcp__camera__status","response":{"error":"Error: the lens is dirty"}}}]}
	]`, string(model.Member(1, "contents")))
}

func TestNoToolsAreNoTool(t *testing.T) {
	tool, err := genaitools.Tool(&toolbox.ToolSet{})
	require.NoError(t, err)
	require.Nil(t, tool)
}
