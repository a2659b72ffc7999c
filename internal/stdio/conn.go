// Package stdio connects to an MCP server that runs as a child process: JSON-RPC
// messages, one a line, over its stdin and stdout.
//
// A [Conn] makes requests, and has a path of its own for tools/call; it knows
// nothing of what the other methods mean.
//
//   - No call outlives its ctx, whatever the server does. Writes never block a
//     caller, see write.go.
//   - The server is always read: no handler of the host, however slow, keeps an
//     answer from its caller, see events.go and serve.go.
//   - One goroutine, the reader, decides that the connection is lost, so that
//     the answers already in the pipe come first, see read.go.
//   - Memory is bounded against a hostile server: one line, the events not yet
//     handled, the requests of the server and the answers to them.
package stdio

import (
	"cmp"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcppool/mcppool/internal/await"
	"github.com/mcppool/mcppool/internal/guests"
	"github.com/mcppool/mcppool/internal/proc"
)

// Defaults of Config.
const (
	DefaultMaxMessageSize = 64 << 20
	DefaultWriteStall     = 30 * time.Second
	DefaultCloseTimeout   = 10 * time.Second
	DefaultStderrTail     = 8 << 10
)

const (
	// reasonTime bounds how long the report of a loss waits for what explains it.
	reasonTime = 100 * time.Millisecond

	// flushTime bounds how long a close waits for what is still to be written,
	// such as the notice that a call was cancelled.
	flushTime = 250 * time.Millisecond
)

// Config says what to start and who hears of what it says. Zero values mean
// the defaults above. The handlers are called one at a time and in order, but
// for OnRequest; they may block, panic and use the Conn.
type Config struct {
	Proc           proc.Config   // its OnExit is the Conn's own
	MaxMessageSize int           // bytes of one line of the server; beyond it the connection is lost
	WriteStall     time.Duration // the server reads nothing for this long in the middle of a message: the connection is lost
	CloseTimeout   time.Duration // for the whole of Close, except for the handlers' part
	StderrTail     int           // bytes kept
	Traffic        *Traffic      // counts bytes; nil for one of the Conn's own

	// OnNotification is called with each notification.
	OnNotification func(method string, params json.RawMessage)

	// OnRequest answers what the server asks (sampling, roots, elicitation); an
	// *Error is sent as it is, another error as an internal one. Up to
	// maxServing run at once. ctx ends with the connection, or when the server
	// cancels the request. ping never gets here. If it is nil, every method is
	// refused as unknown.
	OnRequest func(ctx context.Context, method string, params json.RawMessage) (result any, err error)

	// OnJunk is told a line of stdout that is no message, cut to 256 bytes, and
	// how many there have been; at most ten times a second.
	OnJunk func(line []byte, total int)

	// OnStderr is told each line of stderr, cut to 4 KiB.
	OnStderr func(line []byte)

	// OnLost is told, once, that the connection was lost by itself rather than
	// by Close or Kill. It runs on the reader's goroutine, which Close waits for:
	// it must neither block nor call Close. Done is closed by then.
	OnLost func()

	// OnPanic is told what a handler panicked with. It must not panic itself.
	OnPanic func(v any, stack []byte)
}

// Conn is one connection and the process tree at its other end. Its methods
// may be called from any goroutine.
type Conn struct {
	cfg    Config
	proc   *proc.Process // set under mu by Start, which the exit may overtake
	stdin  rawFile       // likewise
	stdout rawFile
	stderr stderrDrain
	events eventQueue
	server serving
	guests guests.Group
	junk   tail // the last lines of stdout that are no message
	odd    oddities
	reader *reader

	ctx    context.Context // of the handlers of the server's requests
	cancel context.CancelFunc

	first int64 // id of the first request, less one
	ids   atomic.Int64
	count counters

	done    chan struct{}  // closed by finish
	read    chan struct{}  // closed when the reader has ended
	closed  chan struct{}  // closed when Close is through
	closing sync.Once      // of Close
	work    sync.WaitGroup // the writers

	mu      sync.Mutex // protects the fields below, and those of the outgoing in them
	reason  error      // why the connection is being lost
	dead    *DeadError // set by finish
	sealed  bool       // nothing may be written any more
	pending map[int64]*outgoing
	lasting int // subscriptions among them
	out     writeQueue
	unread  unread // at the exit

	closeErr error // written before closed is closed
}

// Start starts the server; its errors are those of [proc.Start]. Nothing is
// sent yet.
func Start(cfg Config) (*Conn, error) {
	cfg.setDefaults()
	c := &Conn{
		cfg:     cfg,
		done:    make(chan struct{}),
		read:    make(chan struct{}),
		closed:  make(chan struct{}),
		pending: make(map[int64]*outgoing),
	}
	c.first = firstID()
	c.ids.Store(c.first)
	c.junk.size = cfg.StderrTail
	c.odd.found = make(chan Oddity, maxOddities)
	cfg.Proc.OnExit = func() {
		c.noteUnread()
		c.lose(ErrExited)
	}
	p, err := proc.Start(cfg.Proc)
	if err != nil {
		return nil, err
	}
	c.reader = newReader(c, p.Stdout)
	c.mu.Lock()
	c.proc = p
	c.stdin, c.stdout = newRawFile(p.Stdin), newRawFile(p.Stdout)
	exited := c.reason != nil
	c.mu.Unlock()
	if exited {
		c.wakeReader()
	}

	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.events.handle, c.events.onPanic = c.handleEvent, c.handlerPanicked
	c.guests.OnPanic = c.handlerPanicked
	c.server.init(c)
	c.stderr.start(c)
	go c.reader.readAll()
	return c, nil
}

// firstID returns where the ids of a connection begin: somewhere in the hundreds
// of millions. A server that prints an old log, its own or another server's, must
// not have an answer in it taken for that to a call of now. It leaves a thousand
// million ids that fit into 32 bits, which is all that some servers have.
func firstID() int64 { return 1<<27 + rand.Int64N(1<<30-1<<27) }

func (cfg *Config) setDefaults() {
	if cfg.MaxMessageSize <= 0 {
		cfg.MaxMessageSize = DefaultMaxMessageSize
	}
	if cfg.WriteStall <= 0 {
		cfg.WriteStall = DefaultWriteStall
	}
	if cfg.CloseTimeout <= 0 {
		cfg.CloseTimeout = DefaultCloseTimeout
	}
	if cfg.StderrTail <= 0 {
		cfg.StderrTail = DefaultStderrTail
	}
	if cfg.Traffic == nil {
		cfg.Traffic = new(Traffic)
	}
}

// Done is closed once the connection is lost for good: within milliseconds of
// the exit of the program that was started, whoever else holds its pipes; when
// it closes its stdin or stdout, stalls or sends a line over the limit; and by
// Close and Kill.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection was lost, a [*DeadError], and nil before Done
// is closed.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead == nil {
		return nil
	}
	return c.dead
}

// Pid returns the process id of the program that was started.
func (c *Conn) Pid() int { return c.proc.Pid() }

// RSS returns the memory of the process tree, see [proc.Process.RSS].
func (c *Conn) RSS() (bytes int64, ok bool) { return c.proc.RSS() }

// RSSOf returns the memory of several process trees, see [proc.RSSOf].
func RSSOf(conns []*Conn) []int64 {
	if len(conns) == 0 {
		return nil
	}
	procs := make([]*proc.Process, len(conns))
	for i, c := range conns {
		procs[i] = c.proc
	}
	return proc.RSSOf(procs...)
}

// StderrTail returns what the server last wrote to its stderr.
func (c *Conn) StderrTail() string { return c.stderr.tail.String() }

// StdoutTail returns the last lines that the server wrote to its stdout and that
// are no message, each cut.
func (c *Conn) StdoutTail() string { return c.junk.String() }

// Go runs f, and after it in every case after, on a goroutine that Close waits for as
// for a handler. It reports false and runs nothing once Close has come that far.
func (c *Conn) Go(f, after func()) bool { return c.guests.Go(f, after) }

// Emit has OnNotification called as if the server had sent a notification.
func (c *Conn) Emit(method string) { c.events.push(event{method: method}) }

// Ending returns a ctx that ends with the connection, for what runs on its behalf.
func (c *Conn) Ending() context.Context { return c.ctx }

// Close ends the connection and the process tree, as [proc.Process.Stop] does,
// and returns once no process, goroutine or descriptor of it is left. Calls
// under way fail at once. What is still to be written, such as the notice of a
// cancelled call, gets a quarter of a second first; notifications that no
// handler has seen are dropped.
//
// A handler of the host that doesn't return is waited for until CloseTimeout
// is over; then Close returns ErrHandlerRunning, and that handler's goroutine
// ends with it. So a handler that calls Close itself waits for itself; it had
// better do that on another goroutine.
//
// Processes that can't be ended are left a second after CloseTimeout, with a
// *[proc.LeftError].
//
// All callers wait for the one that came first, and get its error.
func (c *Conn) Close() error { return c.CloseBy(time.Now().Add(c.cfg.CloseTimeout)) }

// CloseBy is Close with another end of the time for it.
func (c *Conn) CloseBy(deadline time.Time) error {
	c.closing.Do(func() {
		c.finish(c.death(ErrClosed))
		c.flushOut(min(flushTime, time.Until(deadline)/4))
		c.seal()
		c.closeErr = c.proc.Stop(time.Until(deadline))
		<-c.read
		c.stderr.stop()
		c.work.Wait()
		handlers := [...]<-chan struct{}{c.events.close(), c.server.close(), c.guests.Close()}
		for _, idle := range handlers {
			if !await.Closed(idle, time.Until(deadline)) {
				c.closeErr = cmp.Or(c.closeErr, ErrHandlerRunning)
			}
		}
		close(c.closed)
	})
	<-c.closed
	return c.closeErr
}

// flushOut waits until everything queued was written, at most d.
func (c *Conn) flushOut(d time.Duration) {
	c.mu.Lock()
	idle := c.out.idleLocked()
	c.mu.Unlock()
	select {
	case <-idle:
	default:
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-idle:
		case <-c.read: // nobody is there to read it
		case <-timer.C:
		}
	}
}

func (c *Conn) handlerPanicked(v any, stack []byte) {
	c.count.panics.Add(1)
	if c.cfg.OnPanic != nil {
		c.cfg.OnPanic(v, stack)
	}
}

// handleEvent calls the handler of one event.
func (c *Conn) handleEvent(e event) {
	switch {
	case e.junk > 0:
		c.cfg.OnJunk(e.params, e.junk)
	case e.method == "":
		c.cfg.OnStderr(e.params)
	default:
		c.cfg.OnNotification(e.method, e.params)
	}
}

// rawFile is a pipe with access to its descriptor.
type rawFile struct {
	file *os.File
	conn syscall.RawConn
}

func newRawFile(f *os.File) rawFile {
	conn, err := f.SyscallConn()
	if err != nil {
		panic("bug: SyscallConn of an open file: " + err.Error())
	}
	return rawFile{f, conn}
}
