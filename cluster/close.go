package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
	decoder "github.com/mcppool/mcppool/internal/decode"
)

// CloseServer closes the sessions of exactly this configuration on every replica, as
// [mcppool.Pool.CloseServer] does, and calls with what was read of the configuration before, which
// are on their way, fail with [mcppool.ErrServerClosed]. It returns when every replica that
// lives has done so, after two TTLs at most; whether they had is told by [Node.CloseServerEverywhere].
func (n *Node) CloseServer(srv mcppool.Server) {
	n.bounded("server", func(ctx context.Context) error { return n.CloseServerEverywhere(ctx, srv) })
}

// CloseServerEverywhere is [Node.CloseServer] under a ctx. After an error the sessions of this replica are closed, and those
// of others may be yet.
func (n *Node) CloseServerEverywhere(ctx context.Context, srv mcppool.Server) error {
	n.pool.CloseServer(srv)
	return n.closeEverywhere(ctx, n.names.server(&srv), closeServer)
}

// CloseCommand is [Node.CloseServer] for every configuration with the same command and args,
// or the same URL.
func (n *Node) CloseCommand(srv mcppool.Server) {
	n.bounded("command", func(ctx context.Context) error { return n.CloseCommandEverywhere(ctx, srv) })
}

// CloseCommandEverywhere is [Node.CloseCommand] under a ctx.
func (n *Node) CloseCommandEverywhere(ctx context.Context, srv mcppool.Server) error {
	n.pool.CloseCommand(srv)
	return n.closeEverywhere(ctx, n.names.command(&srv), closeCommand)
}

// CloseScope is [mcppool.Pool.CloseScope] wherever the scope has sessions: the conversation was deleted.
func (n *Node) CloseScope(scope string) {
	n.bounded("scope", func(ctx context.Context) error { return n.CloseScopeEverywhere(ctx, scope) })
}

// CloseScopeEverywhere is [Node.CloseScope] under a ctx.
func (n *Node) CloseScopeEverywhere(ctx context.Context, scope string) error {
	n.pool.CloseScope(scope)
	if scope == "" {
		return nil
	}
	return n.closeEverywhere(ctx, n.names.scope(scope), closeScope)
}

// RetireServer is [mcppool.Pool.RetireServer] on every replica.
func (n *Node) RetireServer(srv mcppool.Server) {
	n.bounded("retire", func(ctx context.Context) error { return n.RetireServerEverywhere(ctx, srv) })
}

// RetireServerEverywhere is [Node.RetireServer] under a ctx.
func (n *Node) RetireServerEverywhere(ctx context.Context, srv mcppool.Server) error {
	n.pool.RetireServer(srv)
	return n.closeEverywhere(ctx, n.names.name("retire", n.names.server(&srv)), retireServer)
}

// bounded runs a close that has no ctx of its own.
func (n *Node) bounded(what string, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(n.life, 2*n.opts.TTL)
	defer cancel()
	if err := f(ctx); err != nil {
		n.opts.Logger.Error("cluster: not every replica is known to have closed", "replica", n.name(), "what", what, "err", err.Error())
	}
}

// ListTools returns the Tools of [Node.ToolList].
func (n *Node) ListTools(ctx context.Context, srv mcppool.Server, want mcppool.Borrow) ([]mcp.Tool, error) {
	list, err := n.ToolList(ctx, srv, want)
	if err != nil {
		return nil, err
	}
	return list.Tools, nil
}

// ToolList is [mcppool.Pool.ToolList], on this replica if it runs sessions and the server isn't
// exclusive, and else on one that does or has it. It makes nobody the owner of anything.
func (n *Node) ToolList(ctx context.Context, srv mcppool.Server, want mcppool.Borrow) (*mcppool.ToolList, error) {
	u := n.useOf(&srv)
	defer n.doneWith(u)
	call := mcppool.Call{Scope: want.Scope, Check: want.Check}
	j := &job{srv: &srv, call: &call, use: u, generation: n.generation(u)}
	if srv.Policy.Mode == mcppool.Exclusive {
		j.unit = n.unitOf(&srv, want.Scope, u)
	}
	var list *mcppool.ToolList
	err := n.somewhere(ctx, j, func(at spot) (err error) {
		if at.inc == "" {
			list, err = n.pool.ToolList(ctx, srv, mcppool.Borrow{Scope: want.Scope, Check: n.check(j)})
			return err
		}
		a, err := n.away(ctx, j, at)
		if err != nil {
			return err
		}
		defer a.end()
		r := a.request(at.claim)
		r.List = true
		body, err := a.run(&r, nil)
		if err != nil {
			return err
		}
		list, err = decodeTools(body)
		if err != nil {
			return fmt.Errorf("cluster: list of replica %s: %w", a.name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// toolList is a ToolList on its way.
type toolList struct {
	Tools   []mcp.Tool            `json:"tools"`
	Skipped []mcppool.SkippedTool `json:"skipped,omitempty"`
}

func decodeTools(body []byte) (*mcppool.ToolList, error) {
	list, err := decoder.Tools(body) // which keeps the schemas as they are
	if err != nil {
		return nil, err
	}
	var skipped toolList
	_ = json.Unmarshal(body, &struct {
		Skipped *[]mcppool.SkippedTool `json:"skipped"`
	}{&skipped.Skipped})
	return &mcppool.ToolList{Tools: list.Tools, Skipped: skipped.Skipped}, nil
}

// Owner describes who runs a scope.
type Owner struct {
	Incarnation string // empty when nobody does
	Name        string
	Epoch       uint64 // grows whenever the owner changes
	Self        bool
}

// Owner returns who runs a scope, as the directory has it now.
func (n *Node) Owner(ctx context.Context, scope string) (Owner, error) {
	ctx, cancel := n.op(ctx)
	defer cancel()
	rec, err := n.dir.Get(ctx, Owners, n.names.scope(scope))
	if errors.Is(err, ErrNotFound) {
		return Owner{}, nil
	}
	if err != nil {
		return Owner{}, err
	}
	o := Owner{Incarnation: decode[ownerRecord](rec.Value).Incarnation, Epoch: rec.Revision}
	if dead, err := n.isDead(ctx, o.Incarnation); err != nil || dead {
		return Owner{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	o.Self = o.Incarnation == n.lease.incarnation
	if m := n.members[o.Incarnation]; m != nil {
		o.Name = m.record.Name
	}
	return o, nil
}
