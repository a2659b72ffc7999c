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
	ToolList(ctx context.Context, srv mcppool.Server, want mcppool.Borrow) (*mcppool.ToolList, error)
	CloseServer(srv mcppool.Server)
}

// Box presents the servers of a catalog as one set of tools. It is made by [New] and
// safe for concurrent use. Listings go on in the background when those who asked for
// them have left; [Box.Close] ends them.
type Box struct {
	caller   Caller
	catalog  Catalog
	opts     Options
	listings *listings
	talks    talks
	last     atomic.Pointer[assembly] // of Tools
}

// ErrBoxClosed says that tools weren't listed before [Box.Close].
var ErrBoxClosed = errors.New("toolbox: the box is closed")

// New makes a box; nil options are the defaults. It starts nothing. It fails when pool
// or catalog is nil.
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

// Close ends the listings under way, waits for them, and takes the box off its [Router].
// What is known of tools stays; calls go on as before. It comes before the pool's Close.
// It may be called again; its error is always nil.
func (b *Box) Close() error {
	if b.opts.Router != nil {
		b.opts.Router.remove(b)
	}
	b.listings.close()
	return nil
}

// Forget drops what the box remembers of a conversation that is over: which sessions
// served it, which tools it has found, and which its sessions offer. The sessions
// themselves are the pool's, see [mcppool.Pool.CloseScope]. Conversations that nobody
// forgets are dropped when there are too many, the least recently used first.
func (b *Box) Forget(conv Conversation) {
	b.talks.forget(conv.Scope())
	b.listings.forget(conv.Scope())
}
