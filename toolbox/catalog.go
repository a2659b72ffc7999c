package toolbox

import (
	"cmp"
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
	// List returns the enabled servers, in any order. Neither the box nor the
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
	// Err says why the server can't be used, such as a fault of its entry in a
	// configuration file; nil when it can. Its tools are then in [ToolSet.Failed],
	// calls of them fail with a [*ServerError] that wraps it, and nothing is
	// started. Its sessions stay, so that they are found again once the entry is
	// mended. It must hold no secret.
	Err error
	// Server is what to run or reach.
	Server mcppool.Server
	// Tools says which tools are listed and called.
	Tools Filter
	// Timeout bounds a call; zero means [Options.CallTimeout], negative no limit.
	Timeout time.Duration
}

// allows reports whether the tool may be listed and called.
func (e *Entry) allows(tool string) bool { return e.Tools.Allows(tool) }

// unusable returns why the server can't be used; nil when it can.
func (e *Entry) unusable() error {
	switch {
	case e.Disabled:
		return ErrServerDisabled
	case e.Err != nil:
		return &ServerError{Server: e.ID, Err: e.Err}
	}
	return nil
}

// server is what the pool is given: a server whose name for people is the entry's.
func (e *Entry) server() mcppool.Server {
	s := e.Server
	s.Name = cmp.Or(s.Name, e.ID)
	return s
}

func (e *Entry) usable() bool { return !e.Disabled && e.Err == nil }

// uses reports whether one of the entries has this configuration.
func uses(entries []Entry, s *mcppool.Server) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.usable() && e.Server.Equal(*s) })
}

// StaticCatalog is a catalog that doesn't change. It is made by
// [NewStaticCatalog].
type StaticCatalog struct {
	entries map[string]Entry
	enabled []Entry
}

// NewStaticCatalog makes a catalog of entries, which it keeps and nobody may change any
// more. It fails when an ID is empty or comes twice.
func NewStaticCatalog(entries ...Entry) (*StaticCatalog, error) {
	s := &StaticCatalog{entries: make(map[string]Entry, len(entries))}
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
func (s *StaticCatalog) Lookup(_ context.Context, id string) (Entry, error) {
	e, ok := s.entries[id]
	if !ok {
		return Entry{}, ErrUnknownServer
	}
	return e, nil
}

// List returns the enabled servers by ID.
func (s *StaticCatalog) List(context.Context) ([]Entry, error) { return s.enabled, nil }
