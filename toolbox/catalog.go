package toolbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcppool/mcppool"
)

// ErrUnknownServer is a [Catalog]'s answer when it has no server of an id.
var ErrUnknownServer = errors.New("toolbox: unknown MCP server")

// Catalog says which servers there are. It is asked again for every call, right
// before the call is sent included, so that an edit counts at once: an
// implementation over a database should answer from memory. Its methods may be
// called from several goroutines at once, and must not call the box or the pool.
//
// All that ask a catalog must get the same answers. Tenants that have different
// servers have a catalog and a [Box] each; they may share a pool.
type Catalog interface {
	// Lookup finds one server, disabled or not. [ErrUnknownServer] means that
	// there is none; any other error that the catalog can't say. The box doesn't
	// change the entry, nor may the catalog once it is given out.
	Lookup(ctx context.Context, id string) (Entry, error)
	// List gives the enabled servers, in any order. Neither the box nor the
	// catalog changes the slice once it is given out.
	List(ctx context.Context) ([]Entry, error)
}

// Entry is one server of a [Catalog].
type Entry struct {
	// ID names the server in tools' names, conversations and logs. It is better
	// short and of letters, digits and single underscores or dashes: then it is
	// what the model sees.
	ID string
	// Name is the server's name for people; empty means ID.
	Name string
	// Disabled keeps the server's tools from being listed and called.
	Disabled bool
	// Server is what to run or reach.
	Server mcppool.Server
	// Allow names the only tools that are listed and called; nil means all.
	Allow []string
	// Deny names tools that are neither listed nor called, whatever Allow says.
	Deny []string
	// Timeout bounds a call; zero means [Options.CallTimeout], negative no limit.
	Timeout time.Duration
}

// allows reports whether the tool may be listed and called.
func (e *Entry) allows(tool string) bool {
	return (e.Allow == nil || slices.Contains(e.Allow, tool)) && !slices.Contains(e.Deny, tool)
}

// Static is a catalog that doesn't change. It is made by [NewStatic].
type Static struct {
	entries map[string]Entry
	enabled []Entry
}

// NewStatic makes a catalog of entries, which it keeps and nobody may change any
// more. It fails when an ID is empty or comes twice.
func NewStatic(entries ...Entry) (*Static, error) {
	s := &Static{entries: make(map[string]Entry, len(entries))}
	for _, e := range entries {
		if e.ID == "" {
			return nil, errors.New("toolbox: an entry has no ID")
		}
		if _, twice := s.entries[e.ID]; twice {
			return nil, fmt.Errorf("toolbox: the ID %q comes twice", e.ID)
		}
		s.entries[e.ID] = e
		if !e.Disabled {
			s.enabled = append(s.enabled, e)
		}
	}
	slices.SortFunc(s.enabled, func(a, b Entry) int { return strings.Compare(a.ID, b.ID) })
	return s, nil
}

// Lookup finds one server.
func (s *Static) Lookup(_ context.Context, id string) (Entry, error) {
	e, ok := s.entries[id]
	if !ok {
		return Entry{}, ErrUnknownServer
	}
	return e, nil
}

// List gives the enabled servers by ID.
func (s *Static) List(context.Context) ([]Entry, error) { return s.enabled, nil }
