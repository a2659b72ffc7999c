package rpc

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
)

type (
	handlersKey struct{}
	progressKey struct{}
)

// WithHandlers puts what answers a server's questions into the ctx of a connect, for
// connections that aren't made here.
func WithHandlers(ctx context.Context, h Handlers) context.Context {
	return context.WithValue(ctx, handlersKey{}, h)
}

// HandlersOf returns those of WithHandlers.
func HandlersOf(ctx context.Context) Handlers {
	h, _ := ctx.Value(handlersKey{}).(Handlers)
	return h
}

// WithProgress puts what gets the progress of a call into the call's ctx, if there is
// such a thing.
func WithProgress(ctx context.Context, f func(mcp.ProgressNotification)) context.Context {
	if f == nil {
		return ctx
	}
	return context.WithValue(ctx, progressKey{}, f)
}

// ProgressOf returns that of WithProgress, or nil.
func ProgressOf(ctx context.Context) func(mcp.ProgressNotification) {
	f, _ := ctx.Value(progressKey{}).(func(mcp.ProgressNotification))
	return f
}
