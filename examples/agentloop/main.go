// Agentloop runs an agent loop over two MCP servers: it hands a model the tools
// of both, runs what the model calls, gives it the results, and so on until the
// model answers. The model is a script, so that nothing but this program is
// needed; both servers are this program too, as child processes.
//
//	go run ./examples/agentloop
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		serve(os.Args[2])
		return
	}
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	catalog, err := toolbox.NewStaticCatalog(
		toolbox.Entry{ID: "notes", Server: mcppool.Server{Command: self, Args: []string{"serve", "notes"}}},
		toolbox.Entry{ID: "calc", Server: mcppool.Server{Command: self, Args: []string{"serve", "calc"}}},
	)
	if err != nil {
		return err
	}
	pool, err := mcppool.New(nil)
	if err != nil {
		return err
	}
	defer pool.Close()
	box, err := toolbox.New(pool, catalog, nil)
	if err != nil {
		return err
	}
	defer box.Close()

	tools, err := box.Tools(ctx)
	if err != nil {
		return err
	}
	for _, failed := range tools.Failed {
		fmt.Fprintln(out, "no tools:", failed)
	}
	for _, tool := range tools.Tools {
		fmt.Fprintf(out, "tool %-18s %s\n", tool.Name, tool.Spec.Description)
	}

	// Two conversations. Each has a notes server of its own, which still knows
	// in the second turn what was noted in the first.
	for _, question := range []struct{ thread, text string }{
		{"monday", "What are 19 apples and 23 pears? Keep it in mind."},
		{"tuesday", "What do you have in mind?"},
		{"monday", "What do you have in mind?"},
	} {
		fmt.Fprintf(out, "\n%s> %s\n", question.thread, question.text)
		conv := toolbox.Conversation{Project: "demo", Thread: question.thread}
		answer, err := (&agent{box, tools, out}).converse(ctx, conv, question.text)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s< %s\n", question.thread, answer)
	}
	return nil
}

// message is one entry of a conversation, as model APIs have them.
type message struct {
	role  string // user, assistant, tool
	text  string
	calls []toolbox.ToolCall // of the assistant
	id    string             // of the call that a tool's message answers
}

// maxRounds keeps a model that never stops calling from running for ever.
const maxRounds = 10

// agent is a model with tools.
type agent struct {
	box   *toolbox.Box
	tools *toolbox.ToolSet
	out   io.Writer // what is called, for people
}

// converse is the loop: ask the model, run its calls, and ask again with the
// results.
func (a *agent) converse(ctx context.Context, conv toolbox.Conversation, question string) (string, error) {
	history := []message{{role: "user", text: question}}
	for range maxRounds {
		reply := model(a.tools.OpenAI(), history)
		history = append(history, reply)
		if len(reply.calls) == 0 {
			return reply.text, nil
		}
		// One turn's calls run at the same time, as far as their servers differ.
		for i, result := range a.box.DispatchAll(ctx, reply.calls, conv) {
			call := reply.calls[i]
			fmt.Fprintf(a.out, "  %s %s -> %s\n", call.Name, call.Args, result.Text)
			history = append(history, message{role: "tool", id: call.ID, text: result.Text})
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	return "", fmt.Errorf("no answer after %d rounds", maxRounds)
}

// model stands in for a model's API: it gets the tools and the history, and
// answers or calls. It knows two questions.
func model(_ []map[string]any, history []message) message {
	question, last := history[0].text, history[len(history)-1]
	call := func(id, name, args string) toolbox.ToolCall {
		return toolbox.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
	}
	switch {
	case question == "What do you have in mind?" && len(history) == 1:
		return message{role: "assistant", calls: []toolbox.ToolCall{call("1", "mcp__notes__read", "")}}
	case question == "What do you have in mind?":
		return message{role: "assistant", text: last.text}
	case len(history) == 1:
		return message{role: "assistant", calls: []toolbox.ToolCall{
			call("1", "mcp__calc__add", `{"a":19,"b":23}`),
			call("2", "mcp__notes__write", `{"text":"they asked for a sum"}`),
			call("3", "mcp__calc__add", `{"a":19,"b":`), // models do write such things
		}}
	case len(history) == 5:
		note, _ := json.Marshal(map[string]string{"text": "the sum is " + history[2].text})
		return message{role: "assistant", calls: []toolbox.ToolCall{call("4", "mcp__notes__write", string(note))}}
	default:
		return message{role: "assistant", text: history[2].text + " pieces of fruit."}
	}
}
