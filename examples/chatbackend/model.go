package main

import (
	"encoding/json"
	"strings"

	"github.com/mcppool/mcppool/toolbox"
)

const help = `I am a script. I know: remember TEXT, recall, wait SECONDS, draw, crash, tools, and call NAME {ARGUMENTS}.`

// model stands in for a model's API: it gets the tools, what the user said and
// the results of its last calls, and answers or calls.
func model(tools *toolbox.ToolSet, text string, results []toolbox.Output) (answer string, calls []toolbox.ToolCall) {
	if results != nil {
		if results[0].IsError {
			return "That did not work.", nil
		}
		return "Done: " + results[0].Text, nil
	}
	command, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch strings.ToLower(command) {
	case "remember":
		return one("remember", map[string]any{"text": rest})
	case "wait":
		return one("wait", map[string]any{"seconds": json.Number(rest)})
	case "recall", "draw", "crash":
		return one(strings.ToLower(command), map[string]any{})
	case "call":
		name, args, _ := strings.Cut(rest, " ")
		return "", []toolbox.ToolCall{{ID: "1", Name: name, Args: json.RawMessage(args)}}
	case "tools":
		var lines []string
		for _, t := range tools.Tools {
			lines = append(lines, t.Name)
		}
		for _, f := range tools.Failed {
			lines = append(lines, f.Error())
		}
		return strings.Join(lines, "\n"), nil
	}
	return help, nil
}

func one(tool string, args map[string]any) (string, []toolbox.ToolCall) {
	raw, err := json.Marshal(args)
	if err != nil {
		return "That is not a number.", nil
	}
	return "", []toolbox.ToolCall{{ID: "1", Name: toolbox.ToolName("demo", tool), Args: raw}}
}
