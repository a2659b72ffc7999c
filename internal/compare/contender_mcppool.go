package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/proc"
	"github.com/mcppool/mcppool/internal/stdio"
)

// poolSession is a pool with one session: a pool of its own, so that its close
// is that of the session.
type poolSession struct {
	pool   *mcppool.Pool
	server mcppool.Server
	scope  string
}

func poolServer(t target) mcppool.Server {
	var s mcppool.Server
	s.Command, s.Args = t.child()
	switch t.era {
	case legacy:
		s.Protocol = mcppool.ProtocolLegacy
	case modern:
		s.Protocol = mcppool.ProtocolModern
	}
	return s
}

// dialPool connects what CallTool is then called on.
func dialPool(ctx context.Context, t target) (session, error) {
	return connectPool(ctx, poolServer(t))
}

// dialPoolShared makes calls overlap on the one session.
func dialPoolShared(ctx context.Context, t target) (session, error) {
	server := poolServer(t)
	server.Policy = mcppool.Policy{Mode: mcppool.Shared, Concurrent: true}
	return connectPool(ctx, server)
}

func connectPool(ctx context.Context, server mcppool.Server) (session, error) {
	p, err := mcppool.New(nil)
	if err != nil {
		return nil, err
	}
	s := &poolSession{p, server, "scope"}
	err = p.Do(ctx, s.server, mcppool.Borrow{Scope: s.scope}, func(context.Context, *mcppool.Session) error { return nil })
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return s, nil
}

// dialPoolOneShot connects nothing: each call does.
func dialPoolOneShot(_ context.Context, t target) (session, error) {
	p, err := mcppool.New(nil)
	if err != nil {
		return nil, err
	}
	return &poolSession{p, poolServer(t), ""}, nil
}

func (s *poolSession) call(ctx context.Context, tool string, args any) (reply, error) {
	res, err := s.pool.CallTool(ctx, s.server, mcppool.Call{Tool: tool, Args: args, Scope: s.scope})
	return mcpReply(res, err)
}

func (s *poolSession) close() error { return s.pool.Close() }

// dialPoolMany opens sessions of one pool, each with a scope of its own.
func dialPoolMany() many {
	p, err := mcppool.New(&mcppool.Options{MaxSessions: -1})
	if err != nil {
		panic("bug: a pool that can't be made: " + err.Error())
	}
	scopes := 0
	dial := func(ctx context.Context, t target) (session, error) {
		scopes++
		s := &poolSession{p, poolServer(t), strconv.Itoa(scopes)}
		return sharedSession{s}, p.Do(ctx, s.server, mcppool.Borrow{Scope: s.scope}, func(context.Context, *mcppool.Session) error { return nil })
	}
	return many{dial, p.Close}
}

// sharedSession is closed with its pool.
type sharedSession struct{ *poolSession }

func (sharedSession) close() error { return nil }

// mcpReply takes a result of mcp-go's types apart.
func mcpReply(res *mcp.CallToolResult, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	if len(res.Content) == 1 {
		switch c := res.Content[0].(type) {
		case mcp.TextContent:
			return reply{text: c.Text}, nil
		case mcp.ImageContent:
			return reply{text: c.Data}, nil
		}
	}
	return reply{}, errBlocks
}

// connSession is the pool's transport without the pool: its results are whole,
// but not decoded. It does no handshake, which the cheap server doesn't miss.
type connSession struct{ conn *stdio.Conn }

func dialConn(_ context.Context, t target) (session, error) {
	command, args := t.child()
	c, err := stdio.Start(stdio.Config{Proc: proc.Config{Path: command, Args: args}})
	if err != nil {
		return nil, err
	}
	return connSession{c}, nil
}

func (s connSession) call(ctx context.Context, tool string, args any) (reply, error) {
	raw, ok := args.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(args); err != nil {
			return reply{}, err
		}
	}
	answer, err := s.conn.Call(ctx, stdio.ToolCall{Tool: tool, Args: raw})
	if err != nil {
		return reply{}, err
	}
	defer answer.Release()
	return reply{line: bytes.Clone(answer.Result)}, nil
}

func (s connSession) close() error { return s.conn.Close() }

// inTurn is a session with the cheapest way for its callers to take turns: a mutex,
// which knows no order and no ctx.
type inTurn struct {
	session
	mu *sync.Mutex
}

func dialConnInTurn(ctx context.Context, t target) (session, error) {
	s, err := dialConn(ctx, t)
	return inTurn{s, new(sync.Mutex)}, err
}

func (s inTurn) call(ctx context.Context, tool string, args any) (reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session.call(ctx, tool, args)
}
