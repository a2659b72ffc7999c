package toolbox

import (
	"encoding/json"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// Options are the settings of a [Box]. In every number and duration zero means
// the default given with it, and a negative value means off or no limit. [New]
// copies them.
type Options struct {
	// CallTimeout bounds a call, with the wait for its session and the start of
	// its server; default 300 seconds. An entry's Timeout comes before it, and a
	// deadline of the caller's context that ends sooner before both.
	CallTimeout time.Duration
	// ListTimeout bounds the listing of one server's tools, with the start of
	// the server; default 30 seconds.
	ListTimeout time.Duration
	// CoolOff is how long a server whose listing failed isn't asked again;
	// default 60 seconds.
	CoolOff time.Duration
	// ListMaxAge is how long a listing is kept; default 1 hour. It is renewed
	// sooner when the server's configuration changes or the server says that its
	// tools have changed (see [Router]).
	ListMaxAge time.Duration
	// Limits bound what is kept of a result.
	Limits Limits
	// Validate checks the arguments of a call against the tool, for example
	// with the package toolschema, before anything is started. Its error goes to
	// the model, so it must hold no secret. It is asked only about tools that
	// have been listed. It may be called from several goroutines at once.
	Validate func(tool *mcp.Tool, args json.RawMessage) error
	// OnProgress gets the progress that a call reports, in order, all of it
	// before the call's Dispatch returns. It must not dispatch to the same
	// conversation.
	OnProgress func(Conversation, ToolCall, mcp.ProgressNotification)
	// Router tells the box when a server's tools have changed; nil means that
	// nobody does.
	Router *Router
}

const (
	defaultCallTimeout = 300 * time.Second
	defaultListTimeout = 30 * time.Second
	defaultCoolOff     = 60 * time.Second
	defaultListMaxAge  = time.Hour
)

func (o *Options) callTimeout() time.Duration { return orDefault(o.CallTimeout, defaultCallTimeout) }
func (o *Options) listTimeout() time.Duration { return orDefault(o.ListTimeout, defaultListTimeout) }
func (o *Options) coolOff() time.Duration     { return orDefault(o.CoolOff, defaultCoolOff) }
func (o *Options) listMaxAge() time.Duration  { return orDefault(o.ListMaxAge, defaultListMaxAge) }

// orDefault resolves the zero value. A negative result means off.
func orDefault[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
