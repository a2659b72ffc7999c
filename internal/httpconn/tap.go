package httpconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"unicode"

	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/mcppool/mcppool/internal/rpc"
)

// tap is below mcp-go's transports, for what they don't do:
//
//   - Every request to the server has the headers of the Config, also the one that ends
//     its session. None goes anywhere else, as after a redirect.
//   - A message of the server is bounded, and more so what comes with a failure.
//   - How a request failed is known by more than a text, see exchange.
type tap struct {
	base   http.RoundTripper
	server *url.URL
	header map[string]string
	limit  int // of one message, in bytes
}

const (
	defaultMessage = 64 << 20
	maxFailure     = 64 << 10 // of the body of an answer that is no success
	maxFailureText = 200      // of it in an error

	sessionHeader = "Mcp-Session-Id"
	eventStream   = "text/event-stream"
)

var errTooLarge = errors.New("message over the limit")

func (t *tap) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == t.server.Scheme && req.URL.Host == t.server.Host {
		req = req.Clone(req.Context()) // it is the caller's
		for name, value := range t.header {
			req.Header.Set(name, value)
		}
	}
	x, _ := req.Context().Value(exchangeKey{}).(*exchange)
	resp, err := t.base.RoundTrip(req)
	switch {
	case err != nil:
		x.lost(err)
		return nil, err
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxFailure)) // what there is of it
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(text))
		x.refused(resp, text)
	default:
		kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // what can't be read is none
		x.answered(kind)
		resp.Body = &body{ReadCloser: resp.Body, exchange: x, limit: t.limit, events: kind == eventStream}
	}
	return resp, nil
}

// body is one message, or a stream of events with one each.
type body struct {
	io.ReadCloser
	exchange *exchange
	limit    int
	events   bool
	size     int // of the message so far
	line     int // of the line at hand, but for its end; of events alone
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case b.isOver(p[:n]):
		b.exchange.lost(errTooLarge)
		return 0, errTooLarge
	case err != nil && err != io.EOF:
		b.exchange.lost(err)
	}
	return n, err
}

// isOver counts what was read, and reports whether a message goes over the limit.
func (b *body) isOver(read []byte) bool {
	if !b.events {
		b.size += len(read)
		return b.size > b.limit
	}
	for {
		i := bytes.IndexByte(read, '\n')
		if i < 0 {
			b.size += len(read)
			b.line += len(bytes.TrimRight(read, "\r"))
			return b.size > b.limit
		}
		b.size += i + 1
		b.line += len(bytes.TrimRight(read[:i], "\r"))
		if b.size > b.limit {
			return true
		}
		if b.line == 0 { // an empty line ends an event
			b.size = 0
		}
		b.line = 0
		read = read[i+1:]
	}
}

type exchangeKey struct{}

// exchange is what becomes of the HTTP requests that one request of a client takes, the
// last of which counts. Nil is that of a request which nobody asks about.
type exchange struct {
	mu  sync.Mutex // protects end
	end ending
}

// ending is how an HTTP request ended.
type ending struct {
	err     error            // there was no answer, or none that is read
	refusal *rpc.StatusError // the answer's, if that is no success
	session bool             // that request was made in a session
	kind    string           // of a success, its media type
}

func (x *exchange) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func (x *exchange) set(e ending) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.end = e
}

func (x *exchange) lost(err error)       { x.set(ending{err: err}) }
func (x *exchange) answered(kind string) { x.set(ending{kind: kind}) }

func (x *exchange) refused(resp *http.Response, text []byte) {
	x.set(ending{
		refusal: &rpc.StatusError{Code: resp.StatusCode, Name: http.StatusText(resp.StatusCode), Text: firstLine(text)},
		session: resp.Request.Header.Get(sessionHeader) != "",
	})
}

// explain returns what is known of a request that failed, in place of mcp-go's error,
// which is a text with all of the answer in it.
func (x *exchange) explain(ctx context.Context, limit int, err error) error {
	if err == nil || ctx.Err() != nil {
		return plain(err)
	}
	x.mu.Lock()
	e := x.end
	x.mu.Unlock()
	switch {
	case e.err == errTooLarge:
		return &rpc.AnswerError{Reason: fmt.Sprintf("it is larger than %d bytes", limit)}
	case e.err != nil:
		return fmt.Errorf("%w: %w", rpc.ErrLost, plain(e.err))
	case e.refusal != nil && e.refusal.Code == http.StatusNotFound && e.session:
		return fmt.Errorf("%w: the server has ended the session", rpc.ErrLost)
	case e.refusal != nil:
		return e.refusal
	case e.kind == eventStream:
		return fmt.Errorf("%w: the server ended the stream before its answer", rpc.ErrLost)
	}
	var wrapped *transport.Error
	if e.kind != "" && errors.As(err, &wrapped) {
		return &rpc.AnswerError{Reason: wrapped.Err.Error()}
	}
	return plain(err)
}

// firstLine is the first line of a text that says something, without what can't be
// seen, cut.
func firstLine(text []byte) string {
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return ' '
		}, strings.ToValidUTF8(line, " ")))
		if line != "" {
			return line[:min(len(line), maxFailureText)]
		}
	}
	return ""
}
