package mcppoolotel

import (
	"context"
	"errors"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcppool/mcppool"
)

// failure is how an operation failed; the zero value is that it didn't.
type failure struct {
	kind string // error.type
	code string // of a JSON-RPC error
	text string // for people: never of what a server wrote, but the message of its JSON-RPC error
}

func (f failure) attrs() []attribute.KeyValue {
	var attrs []attribute.KeyValue
	if f.kind != "" {
		attrs = append(attrs, keyErrorType.String(f.kind))
	}
	if f.code != "" {
		attrs = append(attrs, keyStatus.String(f.code))
	}
	return attrs
}

func fail(span trace.Span, f failure) {
	if f.kind != "" {
		span.SetAttributes(f.attrs()...)
		span.SetStatus(codes.Error, f.text)
	}
}

// failureOf sorts the errors of the pool. README.md lists the kinds.
func failureOf(toolError bool, err error) failure {
	var (
		rpc    *mcppool.RPCError
		start  *mcppool.StartError
		lost   *mcppool.SessionLostError
		config *mcppool.ConfigError
	)
	switch {
	case err == nil && toolError:
		return failure{kind: "tool_error"}
	case err == nil:
		return failure{}
	case errors.As(err, &start):
		return failure{kind: "start_failed", text: text("the server did not " + start.Phase + inBrackets(start.Exit))}
	case errors.As(err, &lost):
		return failure{kind: "session_lost", text: text("the session was lost" + inBrackets(lost.Exit))}
	case errors.As(err, &rpc): // of this call, for that of a handshake is in a StartError
		code := strconv.Itoa(rpc.Code)
		return failure{kind: code, code: code, text: text(rpc.Message)}
	case errors.As(err, &config):
		return failure{kind: "invalid_config", text: text(config.Error())}
	}
	for _, known := range []struct {
		err  error
		kind string
	}{
		{mcppool.ErrServerClosed, "server_closed"},
		{mcppool.ErrClosed, "pool_closed"},
		{mcppool.ErrBusy, "busy"},
		{context.DeadlineExceeded, "timeout"},
		{context.Canceled, "cancelled"},
	} {
		if errors.Is(err, known.err) {
			return failure{kind: known.kind, text: known.err.Error()}
		}
	}
	return failure{kind: other}
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}
