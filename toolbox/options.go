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
	// ListWait bounds how long [Box.Tools] waits for servers whose tools aren't known
	// yet; default 30 seconds. Their listings go on.
	ListWait time.Duration
	// ListTimeout bounds the listing of one server's tools in the background, with the
	// start of the server; default 5 minutes. The pool bounds the start by itself.
	ListTimeout time.Duration
	// CoolOff is how long a server whose listing failed isn't asked again; default 60
	// seconds. It doubles up to 16 times as long while the server keeps failing.
	CoolOff time.Duration
	// ListMaxAge is how old a listing may become before it is renewed in the
	// background; default 1 hour. It is renewed sooner when the server says that its
	// tools have changed (see [Router]).
	ListMaxAge time.Duration
	// Search offers a tool that finds tools where there are many; nil offers them all.
	Search *Search
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
	defaultListWait    = 30 * time.Second
	defaultListTimeout = 5 * time.Minute
	defaultCoolOff     = 60 * time.Second
	defaultListMaxAge  = time.Hour
)

func (o *Options) callTimeout() time.Duration { return orDefault(o.CallTimeout, defaultCallTimeout) }
func (o *Options) listWait() time.Duration    { return orDefault(o.ListWait, defaultListWait) }
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
