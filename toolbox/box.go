package toolbox

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// Caller is the part of a [mcppool.Pool] that a box needs.
type Caller interface {
	CallTool(ctx context.Context, srv mcppool.Server, call mcppool.Call) (*mcp.CallToolResult, error)
	ListTools(ctx context.Context, srv mcppool.Server, want mcppool.Borrow) ([]mcp.Tool, error)
	CloseServer(srv mcppool.Server)
}

// Box presents the servers of a catalog as one set of tools. It is made by
// [New] and safe for concurrent use. It starts nothing of its own that outlives
// a call, so there is nothing to close.
type Box struct {
	caller   Caller
	catalog  Catalog
	opts     Options
	listings *listings
	last     atomic.Pointer[assembly] // of Tools
}

// New makes a box; nil options are the defaults. It starts nothing. It fails
// when pool or catalog is nil.
func New(pool Caller, catalog Catalog, opts *Options) (*Box, error) {
	if pool == nil || catalog == nil {
		return nil, errors.New("toolbox: New needs a pool and a catalog")
	}
	b := &Box{caller: pool, catalog: catalog}
	if opts != nil {
		b.opts = *opts
	}
	b.listings = newListings(pool, &b.opts)
	if b.opts.Router != nil {
		b.opts.Router.add(b)
	}
	return b, nil
}
