package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
	arguments "github.com/mcppool/mcppool/internal/encode"
	"github.com/mcppool/mcppool/internal/toolresult"
)

// newClient speaks HTTP/2 with other replicas, and notices within two seconds or so when one is silent.
func (n *Node) newClient() *http.Client {
	t := &http.Transport{
		TLSClientConfig: n.opts.TLS, Protocols: new(http.Protocols), HTTP2: pings(),
		DisableCompression: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
	}
	if n.opts.TLS != nil {
		t.Protocols.SetHTTP2(true)
	} else {
		t.Protocols.SetUnencryptedHTTP2(true)
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func pings() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: time.Second, PingTimeout: time.Second, MaxReceiveBufferPerStream: 4 << 20, MaxConcurrentStreams: 10000}
}

// post sends a signed request. Delivered says whether it may have reached the other replica.
func (n *Node) post(ctx context.Context, addr, path string, body []byte) (res *http.Response, delivered bool, err error) {
	var wrote atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	url := "http://" + addr + path
	if n.opts.TLS != nil {
		url = "https://" + addr + path
	}
	// A reader of a type that net/http doesn't know, so that it repeats nothing by itself.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, struct{ io.Reader }{bytes.NewReader(body)})
	if err != nil {
		return nil, false, err
	}
	req.ContentLength = int64(len(body))
	req.Header.Set("Authorization", n.sign(path, body))
	req.Header.Set("Content-Type", "application/octet-stream")
	res, err = n.client.Do(req)
	return res, wrote.Load(), err
}

// away is a call that another replica runs.
type away struct {
	n        *Node
	j        *job
	name     string // of the other replica
	addr     string
	inc      string
	seq      uint64
	caller   context.Context
	ctx      context.Context // ends with the caller's, and when the other replica is fenced
	cancel   context.CancelFunc
	handlers mcppool.Handlers
	answers  sync.WaitGroup
}

// callThere has another replica run a job.
func (n *Node) callThere(ctx context.Context, j *job, at spot) (*mcp.CallToolResult, error) {
	a, err := n.away(ctx, j, at)
	if err != nil {
		return nil, err
	}
	defer a.end()
	r := a.request(at.claim)
	r.Tool, r.Meta, r.IfSession, r.Progress = j.call.Tool, j.call.Meta, j.call.IfSession, j.call.OnProgress != nil
	r.Samples, r.Elicits = a.handlers.Sampling != nil, a.handlers.Elicitation != nil
	args, err := arguments.Object(j.call.Args)
	if err != nil {
		return nil, &mcppool.ConfigError{Field: "Call.Args", Reason: err.Error()}
	}
	body, err := a.run(&r, args)
	if err != nil {
		return nil, err
	}
	res, err := (&toolresult.Decoder{Unknown: unknownContent}).Decode(body)
	if err != nil {
		return nil, fmt.Errorf("cluster: result of replica %s: %w", a.name, err)
	}
	n.count(&n.counts.Remote)
	return res, nil
}

func unknownContent(typ string, raw json.RawMessage) mcp.Content {
	return mcppool.UnknownContent{Type: typ, Raw: raw}
}

// away looks up where a job is to go.
func (n *Node) away(ctx context.Context, j *job, at spot) (*away, error) {
	a := &away{n: n, j: j, inc: at.inc, caller: ctx, seq: n.seq.Add(1), handlers: n.pool.Options().Handlers}
	if own := j.call.Handlers; own != nil {
		if own.Sampling != nil {
			a.handlers.Sampling = own.Sampling
		}
		if own.Elicitation != nil {
			a.handlers.Elicitation = own.Elicitation
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.members[at.inc]
	if m == nil || m.record.State.over() {
		return nil, gone
	}
	if a.name, a.addr = m.record.Name, m.record.Addr; a.name == "" {
		a.name = at.inc
	}
	a.ctx, a.cancel = context.WithCancel(ctx)
	if n.aways[at.inc] == nil {
		n.aways[at.inc] = map[*away]struct{}{}
	}
	n.aways[at.inc][a] = struct{}{}
	return a, nil
}

// end ends all that belongs to the call.
func (a *away) end() {
	a.cancel()
	a.answers.Wait()
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	delete(a.n.aways[a.inc], a)
	if len(a.n.aways[a.inc]) == 0 {
		delete(a.n.aways, a.inc)
	}
}

func (a *away) request(claim bool) request {
	r := request{
		header: header{Version: protocolVersion, To: a.inc, Seq: a.seq}, Claim: claim,
		Generation: a.j.generation, Scope: a.j.call.Scope, Server: toWire(a.j.srv),
	}
	a.n.mu.Lock()
	r.From = a.n.lease.incarnation
	a.n.mu.Unlock()
	if d, ok := a.ctx.Deadline(); ok {
		r.Timeout = max(int64(time.Until(d)), 1)
	}
	return r
}

// run posts a request and follows its answer to the end.
func (a *away) run(r *request, args []byte) ([]byte, error) {
	if !a.n.check(a.j)() {
		return nil, fmt.Errorf("cluster: %w", mcppool.ErrServerClosed)
	}
	body := append(append(encode1(r), '\n'), args...)
	if int64(len(body)) > a.n.opts.MaxMessage {
		return nil, &mcppool.ConfigError{Field: "Call.Args", Reason: "are longer than cluster.Options.MaxMessage"}
	}
	res, delivered, err := a.n.post(a.ctx, a.addr, pathCall, body)
	if err != nil {
		return nil, a.failed(delivered, err)
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, gone
	default:
		text, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10))
		return nil, refusedBy(a.name, res.StatusCode, text)
	}
	in := bufio.NewReaderSize(res.Body, 64<<10)
	for {
		kind, data, err := readEvent(in, a.n.opts.MaxMessage+64<<10)
		if err != nil {
			return nil, a.failed(true, err)
		}
		body, last, err := a.event(kind, data)
		if err != nil || last {
			return body, err
		}
	}
}

// encode1 is v as one line.
func encode1(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("bug: " + err.Error())
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// failed is what a caller gets when the other replica said nothing more.
func (a *away) failed(delivered bool, err error) error {
	switch {
	case a.caller.Err() != nil && !delivered:
		return mcppool.MarkNotSent(a.caller.Err())
	case a.caller.Err() != nil:
		return fmt.Errorf("cluster: waiting for replica %s: %w", a.name, a.caller.Err())
	case !delivered:
		return errors.Join(gone, err)
	case errors.Is(err, errTooLong):
		return &RemoteError{Node: a.name, Text: err.Error(), Err: err}
	}
	a.n.count(&a.n.counts.Lost)
	return &OwnerLostError{a.name, err}
}

// refusedBy is the error of an answer that is no stream.
func refusedBy(name string, status int, text []byte) error {
	var w wireError
	switch {
	case status == http.StatusUnauthorized:
		return mcppool.MarkNotSent(fmt.Errorf("cluster: replica %s refused the signature: have both the same Options.Secret?", name))
	case json.Unmarshal(text, &w) != nil || w.Kind == "":
		return mcppool.MarkNotSent(fmt.Errorf("cluster: replica %s answered with HTTP status %d", name, status))
	}
	return refusal(w.Kind)
}

// event acts upon one event; last says that body is the result.
func (a *away) event(kind string, data [][]byte) (body []byte, last bool, err error) {
	if len(data) == 0 {
		return nil, false, nil // a kind of a later version
	}
	switch kind {
	case eventProgress:
		var p mcp.ProgressNotification
		if json.Unmarshal(data[0], &p) == nil && a.j.call.OnProgress != nil {
			a.j.call.OnProgress(p)
		}
	case eventAsk:
		var q question
		if len(data) == 2 && json.Unmarshal(data[0], &q) == nil {
			a.answers.Go(func() { a.answer(&q, data[1]) })
		}
	case eventResult, eventError:
		var e ended
		if err := json.Unmarshal(data[0], &e); err != nil {
			return nil, true, a.failed(true, err)
		}
		if a.j.call.Served != nil && e.Served.SessionID != "" {
			*a.j.call.Served = e.Served
		}
		if e.Error != nil {
			if r := refusal(e.Error.Kind); r.known() {
				return nil, true, r
			}
			return nil, true, e.Error.error(a.name)
		}
		if len(data) != 2 {
			return nil, true, a.failed(true, io.ErrUnexpectedEOF)
		}
		return data[1], true, nil
	}
	return nil, false, nil
}

func (r refusal) known() bool {
	switch r {
	case notOwner, fenced, draining, busy, stranger, gone:
		return true
	}
	return false
}

// answer answers a question of the server by this replica's handlers.
func (a *away) answer(q *question, params []byte) {
	res, err := ask(a.ctx, &a.handlers, q, params)
	ans := answer{header: header{Version: protocolVersion, To: a.inc, Seq: a.n.seq.Add(1)}, Call: a.seq, ID: q.ID, Result: res}
	if err != nil {
		ans.Error = err.Error()
	}
	a.n.mu.Lock()
	ans.From = a.n.lease.incarnation
	a.n.mu.Unlock()
	if r, _, err := a.n.post(a.ctx, a.addr, pathAnswer, encode1(&ans)); err == nil {
		_ = r.Body.Close()
	}
}

// ask calls the handler that a question is for.
func ask(ctx context.Context, h *mcppool.Handlers, q *question, params []byte) (res []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.New("the handler panicked")
		}
	}()
	var out any
	switch {
	case q.Method == string(mcp.MethodSamplingCreateMessage) && h.Sampling != nil:
		var req mcp.CreateMessageRequest
		if err = json.Unmarshal(params, &req); err == nil {
			out, err = h.Sampling(ctx, q.From, req)
		}
	case q.Method == string(mcp.MethodElicitationCreate) && h.Elicitation != nil:
		var req mcp.ElicitationRequest
		if err = json.Unmarshal(params, &req); err == nil {
			out, err = h.Elicitation(ctx, q.From, req)
		}
	default:
		err = errors.New("nobody answers " + q.Method)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}
