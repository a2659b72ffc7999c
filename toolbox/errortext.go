package toolbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcppool/mcppool"
)

// failed is the output of a call that gave no result.
func failed(server, tool string, err error, budget time.Duration) Output {
	text := errorPrefix + errorText(server, tool, err, budget)
	return Output{Content: Content{Text: text, IsError: true}, Err: err, Server: server, Tool: tool}
}

// errorText says to the model what it can make use of: whose fault it is,
// whether the tool may have run, whether to try again. It is put together from
// what is known to be harmless: nothing of a configuration, of a server's
// stderr or of an unknown error gets in. budget is how long the call had.
func errorText(server, tool string, err error, budget time.Duration) string {
	name := "MCP tool '" + quoted(tool) + "' "
	var (
		args     *ArgsError
		config   *mcppool.ConfigError
		start    *mcppool.StartError
		lost     *mcppool.SessionLostError
		busy     *mcppool.BusyError
		rpc      *mcppool.RPCError
		listing  *listTimeoutError
		unusable *ServerError
	)
	switch {
	case errors.Is(err, ErrBadName):
		return "'" + quoted(tool) + "' is not the name of an MCP tool: the names are of the form mcp__server__tool"
	case errors.Is(err, ErrUnknownServer):
		return "unknown MCP server '" + quoted(server) + "'"
	case errors.Is(err, ErrServerDisabled):
		return "MCP server '" + quoted(server) + "' is disabled"
	case errors.As(err, &unusable):
		return "MCP server '" + quoted(server) + "' is not usable"
	case errors.Is(err, ErrUnknownTool):
		return "MCP server '" + quoted(server) + "' has no tool '" + quoted(tool) + "'"
	case errors.Is(err, ErrToolDenied):
		return name + "is not allowed"
	case errors.Is(err, ErrInputRequired):
		return name + "failed: MCP server requires input that can't be given"
	case errors.As(err, &args):
		return name + "got invalid arguments: " + oneLine(args.Err.Error(), maxMessage)

	case errors.Is(err, mcppool.ErrServerClosed):
		return name + "failed: MCP server was updated or removed during the call"
	case errors.Is(err, mcppool.ErrClosed):
		return name + "failed: the MCP servers are being shut down"
	case errors.As(err, &rpc):
		return name + "failed: " + serverMessage(rpc.Message)
	case errors.As(err, &lost):
		return name + "failed: MCP server stopped during the call" + exit(lost.Exit) + "; the tool may have run"
	case errors.As(err, &start):
		return name + "failed: MCP server could not be started" + exit(start.Exit) + retry(start.RetryAfter)
	case errors.As(err, &busy):
		return name + "failed: too many calls are under way" + retry(busy.RetryAfter)
	case errors.Is(err, mcppool.ErrBusy):
		return name + "failed: too many calls are under way; try again later"
	case errors.As(err, &config):
		return name + "failed: MCP server is not configured correctly"
	case errors.As(err, &listing):
		return name + "failed: MCP server did not list its tools within " + seconds(listing.after)
	case errors.Is(err, context.DeadlineExceeded):
		return name + "timed out after " + seconds(budget)
	case errors.Is(err, context.Canceled):
		return name + "cancelled"
	default:
		return name + "failed: internal error"
	}
}

// maxMessage bounds, in bytes, what a server's error message takes up.
const maxMessage = 1000

func quoted(name string) string { return oneLine(name, 100) }

func exit(how string) string {
	if how == "" {
		return ""
	}
	return " (" + oneLine(how, 100) + ")"
}

func retry(after time.Duration) string {
	if after <= 0 {
		return ""
	}
	return "; try again in " + seconds(after)
}

// seconds is a duration as people say it: 0.2s, 300s. What is left of a
// caller's deadline is never a round number, so three digits do.
func seconds(d time.Duration) string {
	s, _ := strconv.ParseFloat(fmt.Sprintf("%.3g", max(d, 0).Seconds()), 64)
	return strconv.FormatFloat(s, 'f', -1, 64) + "s"
}

// serverMessage is a server's own error message without the stack trace that
// frameworks put behind it.
func serverMessage(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if isTrace(line) {
			lines = lines[:i]
			break
		}
	}
	s = strings.TrimSpace(oneLine(strings.Join(lines, "\n"), maxMessage))
	if s == "" {
		return "the server gave no reason"
	}
	return s
}

// isTrace knows the lines with which the stack traces of Python, Go, Node, Java,
// .NET, Ruby and Rust begin.
func isTrace(line string) bool {
	trimmed := strings.TrimSpace(line)
	for _, prefix := range []string{"Traceback (most recent call last)", "goroutine ", "at ", "from ", "File \"", "stack backtrace:", "Stack trace"} {
		if strings.HasPrefix(trimmed, prefix) && (trimmed != line || !strings.HasPrefix(prefix, "at ") && !strings.HasPrefix(prefix, "from ")) {
			return true
		}
	}
	return false
}
