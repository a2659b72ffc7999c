package main

import (
	"context"
	"errors"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// mcpGoSession is mcp-go's client over its own stdio transport.
type mcpGoSession struct{ client *client.Client }

func dialMCPGo(ctx context.Context, t target) (session, error) {
	command, args := t.child()
	var opts []client.ClientOption
	if t.era == legacy {
		opts = append(opts, client.WithProtocolVersion(mcp.LATEST_LEGACY_PROTOCOL_VERSION))
	}
	c := client.NewClient(transport.NewStdio(command, nil, args...), opts...)
	// The ctx of Start is the life of the process.
	if err := c.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	req := mcp.InitializeRequest{}
	req.Params.ClientInfo = mcp.Implementation{Name: "compare", Version: "1"}
	_, err := c.Initialize(ctx, req)
	if err == nil && t.era != auto && mcp.IsModernProtocol(c.ProtocolVersion()) != (t.era == modern) {
		err = errors.New("the connection is of the other era: " + c.ProtocolVersion())
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return mcpGoSession{c}, nil
}

func (s mcpGoSession) call(ctx context.Context, tool string, args any) (reply, error) {
	req := mcp.CallToolRequest{}
	req.Params.Name = tool
	req.Params.Arguments = args
	return mcpReply(s.client.CallTool(ctx, req))
}

func (s mcpGoSession) close() error { return s.client.Close() }
