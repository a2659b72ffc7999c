package cluster

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// Paths of what replicas ask of each other. The version is part of them.
const (
	pathCall   = "/mcppool/cluster/1/call"   // a tool call, or a list of tools
	pathAnswer = "/mcppool/cluster/1/answer" // an answer to what a server asked during one
)

// header is what all that is posted begins with.
type header struct {
	Version int    `json:"v"`
	From    string `json:"from"` // incarnations: who sends it, and who is to run it
	To      string `json:"to"`
	Seq     uint64 `json:"seq"` // never the same twice of a sender
}

// request is the first line of what is posted to pathCall; the call's arguments follow it.
type request struct {
	header
	Timeout    int64      `json:"timeout,omitempty"` // ns that the caller has left; 0: no deadline
	Claim      bool       `json:"claim,omitempty"`
	List       bool       `json:"list,omitempty"`
	Generation uint64     `json:"generation,omitempty"`
	Scope      string     `json:"scope,omitempty"`
	Server     wireServer `json:"server"`
	Tool       string     `json:"tool,omitempty"`
	Meta       *mcp.Meta  `json:"meta,omitempty"`
	IfSession  string     `json:"ifSession,omitempty"`
	Progress   bool       `json:"progress,omitempty"`
	Samples    bool       `json:"samples,omitempty"` // the caller answers sampling
	Elicits    bool       `json:"elicits,omitempty"`
}

// wireServer is a Server with its Policy, but for BeforeClose, which stays where it is.
type wireServer struct {
	mcppool.Server
	Mode           mcppool.Mode          `json:"mode,omitempty"`
	Concurrent     bool                  `json:"concurrent,omitempty"`
	Processes      int                   `json:"processes,omitempty"`
	Spares         int                   `json:"spares,omitempty"`
	IdleTimeout    time.Duration         `json:"idle,omitempty"`
	ConnectTimeout time.Duration         `json:"connect,omitempty"`
	AfterAbandon   mcppool.AbandonPolicy `json:"abandon,omitempty"`
	TermFirst      bool                  `json:"termFirst,omitempty"`
}

func toWire(s *mcppool.Server) wireServer {
	p := &s.Policy
	return wireServer{
		*s, p.Mode, p.Concurrent, p.Processes, p.Spares, p.IdleTimeout, p.ConnectTimeout, p.AfterAbandon, p.TermFirst,
	}
}

func (w *wireServer) server() mcppool.Server {
	s := w.Server
	s.Policy = mcppool.Policy{
		Mode: w.Mode, Concurrent: w.Concurrent, Processes: w.Processes, Spares: w.Spares, IdleTimeout: w.IdleTimeout,
		ConnectTimeout: w.ConnectTimeout, AfterAbandon: w.AfterAbandon, TermFirst: w.TermFirst,
	}
	return s
}

// answer is what is posted to pathAnswer.
type answer struct {
	header
	Call   uint64          `json:"call"` // Seq of the call
	ID     int             `json:"id"`   // of the question
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// The events of the stream that answers a call.
const (
	eventProgress = "progress" // a progress notification
	eventAsk      = "ask"      // a question of the server
	eventResult   = "result"   // head: ended; body: the result. The last one
	eventError    = "error"    // head: ended. The last one
)

// question is the head of an ask; its body is the request.
type question struct {
	ID     int            `json:"id"`
	Method string         `json:"method"`
	From   mcppool.Origin `json:"from"`
}

// ended is the head of the last event.
type ended struct {
	Served mcppool.Served `json:"served"`
	Error  *wireError     `json:"error,omitempty"`
}

// stream writes events, as those of text/event-stream are: lines of JSON.
func writeEvent(w io.Writer, kind string, head any, body []byte) error {
	var b bytes.Buffer
	b.WriteString("event: " + kind + "\ndata: ")
	h, err := json.Marshal(head)
	if err != nil {
		return err
	}
	b.Write(h)
	b.WriteByte('\n')
	if body != nil {
		b.WriteString("data: ")
		b.Write(body)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}

var errTooLong = errors.New("cluster: a message of another replica is longer than Options.MaxMessage")

// readEvent reads one event, of limit bytes at most.
func readEvent(r *bufio.Reader, limit int64) (kind string, data [][]byte, err error) {
	for {
		line, err := readLine(r, &limit)
		if err != nil {
			return "", nil, err
		}
		switch {
		case len(line) == 0:
			return kind, data, nil
		case bytes.HasPrefix(line, []byte("event: ")):
			kind = string(line[len("event: "):])
		case bytes.HasPrefix(line, []byte("data: ")):
			data = append(data, line[len("data: "):])
		}
	}
}

func readLine(r *bufio.Reader, limit *int64) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if *limit -= int64(len(part)); *limit < 0 {
			return nil, errTooLong
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// sign is the signature of a whole request.
func (n *Node) sign(path string, body []byte) string {
	h := hmac.New(sha256.New, n.opts.Secret)
	fmt.Fprintf(h, "peer %s\n", path)
	h.Write(body)
	return scheme + hex.EncodeToString(h.Sum(nil))
}

const scheme = "MCPPOOL-HMAC-SHA256 "

// window tells which requests of a replica were seen. One that is far behind the latest counts as seen.
type window struct {
	high uint64
	seen [1 << 10]uint64 // of the last 65 536 numbers, one bit each
}

// fresh reports whether a number wasn't seen before, and notes it.
func (w *window) fresh(seq uint64) bool {
	const size = uint64(len(w.seen)) * 64
	if seq == 0 || seq+size <= w.high {
		return false
	}
	if seq > w.high {
		for s := w.high + 1; s <= seq && s <= w.high+size; s++ {
			w.seen[s/64%uint64(len(w.seen))] &^= 1 << (s % 64)
		}
		w.high = seq
	}
	word, bit := &w.seen[seq/64%uint64(len(w.seen))], uint64(1)<<(seq%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// wireError is an error on its way to the caller's replica.
type wireError struct {
	Kind    string `json:"kind"`
	Text    string `json:"text"`
	NotSent bool   `json:"notSent,omitempty"`
	Node    string `json:"node,omitempty"`

	RPC    *mcppool.RPCError    `json:"rpc,omitempty"`
	Config *mcppool.ConfigError `json:"config,omitempty"`
	Busy   *mcppool.BusyError   `json:"busy,omitempty"`
	Lost   *wireDeath           `json:"lost,omitempty"`
	Start  *wireDeath           `json:"start,omitempty"`
}

// wireDeath is a StartError or a SessionLostError.
type wireDeath struct {
	Server, Phase, Exit, Stderr, Stdout, Err string
	RetryAfter                               time.Duration
}

func errorToWire(err error) *wireError {
	w := &wireError{Text: err.Error(), NotSent: mcppool.SafeToRetry(err)}
	var (
		start *mcppool.StartError
		lost  *mcppool.SessionLostError
		owner *OwnerLostError
	)
	switch {
	case asRefusal(err) != "":
		w.Kind = string(asRefusal(err))
	case errors.As(err, &owner):
		w.Kind, w.Node, w.Text = "ownerlost", owner.Node, errText(owner.Err)
	case errors.As(err, &w.RPC), errors.As(err, &w.Config), errors.As(err, &w.Busy):
	case errors.As(err, &start):
		w.Start = &wireDeath{start.Server, start.Phase, start.Exit, start.Stderr, start.Stdout, errText(start.Err), start.RetryAfter}
	case errors.As(err, &lost):
		w.Lost = &wireDeath{Server: lost.Server, Exit: lost.Exit, Stderr: lost.Stderr, Stdout: lost.Stdout, Err: errText(lost.Err)}
	default:
		for kind, target := range plainErrors {
			if errors.Is(err, target) {
				w.Kind = kind
			}
		}
	}
	return w
}

// plainErrors are those that carry no data, by their names between replicas.
var plainErrors = map[string]error{
	"closed": mcppool.ErrClosed, "serverclosed": mcppool.ErrServerClosed, "othersession": mcppool.ErrOtherSession,
	"deadline": context.DeadlineExceeded, "canceled": context.Canceled,
}

// error is what the caller gets.
func (w *wireError) error(node string) error {
	remote := &RemoteError{Node: node, Text: w.Text, Err: errors.New(w.Text)}
	switch {
	case w.Kind == "ownerlost":
		return &OwnerLostError{w.Node, errors.New(w.Text)}
	case w.RPC != nil:
		remote.Err = w.RPC
	case w.Config != nil:
		remote.Err = w.Config
	case w.Busy != nil:
		remote.Err = w.Busy
	case w.Start != nil:
		d := w.Start
		remote.Err = &mcppool.StartError{
			Server: d.Server, Phase: d.Phase, Exit: d.Exit, Stderr: d.Stderr, Stdout: d.Stdout, RetryAfter: d.RetryAfter, Err: errors.New(d.Err),
		}
	case w.Lost != nil:
		d := w.Lost
		remote.Err = &mcppool.SessionLostError{Server: d.Server, Exit: d.Exit, Stderr: d.Stderr, Stdout: d.Stdout, Err: errors.New(d.Err)}
	case plainErrors[w.Kind] != nil:
		remote.Err = plainErrors[w.Kind]
	}
	if w.NotSent {
		return mcppool.MarkNotSent(remote)
	}
	return remote
}
