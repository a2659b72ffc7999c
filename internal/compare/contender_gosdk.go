package main

import (
	"context"
	"errors"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sdkSession is the client of the official SDK over its CommandTransport.
type sdkSession struct{ session *mcp.ClientSession }

func dialGoSDK(ctx context.Context, t target) (session, error) {
	command, args := t.child()
	opts := &mcp.ClientSessionOptions{}
	if t.era == legacy {
		opts.ProtocolVersion = "2025-11-25"
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "compare", Version: "1"}, nil)
	s, err := c.Connect(ctx, &mcp.CommandTransport{Command: exec.Command(command, args...)}, opts)
	if err != nil {
		return nil, err
	}
	if v := s.InitializeResult().ProtocolVersion; t.era != auto && (v >= "2026-07-28") != (t.era == modern) {
		return nil, errors.Join(errors.New("the connection is of the other era: "+v), s.Close())
	}
	return sdkSession{s}, nil
}

func (s sdkSession) call(ctx context.Context, tool string, args any) (reply, error) {
	res, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return reply{}, err
	}
	if len(res.Content) == 1 {
		switch c := res.Content[0].(type) {
		case *mcp.TextContent:
			return reply{text: c.Text}, nil
		case *mcp.ImageContent:
			return reply{data: c.Data}, nil
		}
	}
	return reply{}, errBlocks
}

func (s sdkSession) close() error { return s.session.Close() }
