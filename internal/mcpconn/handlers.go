package mcpconn

import (
	"context"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
)

// clientOptions are those of mcp-go's client that every connection has. One call
// is one request: mcp-go would send it again for a server that wants input.
func (cfg *Config) clientOptions() []client.ClientOption {
	opts := []client.ClientOption{client.WithMaxInputRoundTrips(1)}
	h := asked{&cfg.Handlers}
	if h.Sampling != nil {
		opts = append(opts, client.WithSamplingHandler(h))
	}
	if h.Elicitation != nil {
		opts = append(opts, client.WithElicitationHandler(h))
	}
	if h.Roots != nil {
		opts = append(opts, client.WithRootsHandler(h))
	}
	return opts
}

// asked is the handlers in mcp-go's form.
type asked struct{ *Handlers }

func (a asked) CreateMessage(ctx context.Context, req mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return a.Sampling(ctx, req)
}

func (a asked) Elicit(ctx context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return a.Elicitation(ctx, req)
}

func (a asked) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	roots, err := a.Roots(ctx)
	if err != nil {
		return nil, err
	}
	return &mcp.ListRootsResult{Roots: roots}, nil
}
