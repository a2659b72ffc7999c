package cluster

import (
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

func (n *Node) newServer() *http.Server {
	s := &http.Server{
		Handler: n.PeerHandler(), ReadHeaderTimeout: 10 * time.Second, TLSConfig: n.opts.TLS,
		Protocols: new(http.Protocols), HTTP2: pings(),
	}
	if n.opts.TLS != nil {
		s.Protocols.SetHTTP2(true)
	} else {
		s.Protocols.SetUnencryptedHTTP2(true)
	}
	return s
}

// PeerHandler serves what other replicas ask of this one, for a program that serves it itself, at
// paths below /mcppool/cluster/. It needs HTTP/2.
func (n *Node) PeerHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathCall, n.serveCall)
	mux.HandleFunc("POST "+pathAnswer, n.serveAnswer)
	return mux
}

// receive reads a request and reports whether it is one of a replica's.
func (n *Node) receive(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, n.opts.MaxMessage))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		http.Error(w, "longer than Options.MaxMessage", http.StatusRequestEntityTooLarge)
	case err != nil:
		http.Error(w, "not read", http.StatusBadRequest)
	case !hmac.Equal([]byte(r.Header.Get("Authorization")), []byte(n.sign(r.URL.Path, body))):
		http.Error(w, "wrong signature", http.StatusUnauthorized)
	default:
		return body, true
	}
	return nil, false
}

func refuse(w http.ResponseWriter, why refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusConflict)
	_ = json.NewEncoder(w).Encode(wireError{Kind: string(why), NotSent: true})
}

// admit reports whether a request is for this incarnation, of a replica that lives, and new.
func (n *Node) admit(ctx context.Context, w http.ResponseWriter, h header) bool {
	n.mu.Lock()
	mine, known := h.To == n.lease.incarnation, n.members[h.From] != nil
	n.mu.Unlock()
	switch {
	case h.Version < minVersion:
		http.Error(w, "too old a version", http.StatusBadRequest)
		return false
	case !mine:
		http.Error(w, "no such incarnation", http.StatusNotFound)
		return false
	}
	if !known {
		ctx, cancel := n.op(ctx)
		rec, err := n.dir.Get(ctx, Leases, h.From)
		cancel()
		if err == nil {
			n.mu.Lock()
			n.learnLocked(rec)
			n.mu.Unlock()
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.members[h.From]
	if m == nil || m.record.State == leaseFenced {
		refuse(w, stranger)
		return false
	}
	win := n.windows[h.From]
	if win == nil {
		win = &window{}
		n.windows[h.From] = win
	}
	if !win.fresh(h.Seq) {
		http.Error(w, "seen before", http.StatusBadRequest)
		return false
	}
	return true
}

// serveCall runs another replica's call.
func (n *Node) serveCall(w http.ResponseWriter, r *http.Request) {
	body, ok := n.receive(w, r)
	if !ok {
		return
	}
	var req request
	head, args, _ := bytes.Cut(body, []byte("\n"))
	if err := json.Unmarshal(head, &req); err != nil {
		http.Error(w, "not a request", http.StatusBadRequest)
		return
	}
	ctx := r.Context()
	if !n.admit(ctx, w, req.header) {
		return
	}
	if req.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(req.Timeout))
		defer cancel()
	}
	v := &visitor{n: n, w: w, req: &req}
	v.serve(ctx, args)
}

// visitor is a call that runs here for another replica.
type visitor struct {
	n   *Node
	req *request

	mu    sync.Mutex // protects the fields below, and the order of events
	w     http.ResponseWriter
	began bool
}

// serve runs the call and answers.
func (v *visitor) serve(ctx context.Context, args []byte) {
	n, req := v.n, v.req
	srv := req.Server.server()
	var served mcppool.Served
	call := mcppool.Call{
		Tool: req.Tool, Args: json.RawMessage(args), Meta: req.Meta, Scope: req.Scope, IfSession: req.IfSession, Served: &served,
	}
	u := n.useOf(&srv)
	defer n.doneWith(u)
	j := &job{srv: &srv, call: &call, use: u, unit: n.unitOf(&srv, req.Scope, u), generation: req.Generation, hops: 1}
	asker := v.prepare(&call)
	defer asker.end()
	out, err := v.run(ctx, j)
	if why := asRefusal(err); why != "" && !v.began {
		n.count(&n.counts.Refusals)
		refuse(v.w, why)
		return
	}
	if err != nil {
		v.event(eventError, ended{Served: served, Error: errorToWire(err)}, nil)
		return
	}
	v.event(eventResult, ended{Served: served}, out)
}

// run runs a job that another replica sent here, and encodes its result.
func (v *visitor) run(ctx context.Context, j *job) ([]byte, error) {
	n := v.n
	if err := n.await(ctx, func() bool { return n.acked >= j.generation }); err != nil { // this replica is behind
		return nil, err
	}
	if n.generation(j.use) > j.generation { // the caller is
		return nil, fmt.Errorf("cluster: %w", mcppool.ErrServerClosed)
	}
	if v.req.List {
		list, err := n.pool.ToolList(ctx, *j.srv, mcppool.Borrow{Scope: j.call.Scope, Check: n.check(j)})
		if err != nil {
			return nil, err
		}
		return json.Marshal(toolList{list.Tools, list.Skipped})
	}
	at, err := n.locateHere(ctx, j, v.req.Claim)
	if err != nil {
		return nil, err
	}
	res, err := n.callHere(ctx, j, at.holding)
	if err != nil {
		return nil, err
	}
	return json.Marshal(res)
}

// locateHere is locate for what another replica sent, which goes nowhere else.
func (n *Node) locateHere(ctx context.Context, j *job, claim bool) (spot, error) {
	n.mu.Lock()
	h, err, may := n.holdings[j.name], n.usableLocked(), n.mayHostLocked()
	state := n.lease.state
	n.mu.Unlock()
	switch {
	case err != nil:
		return spot{}, fenced // whoever asks may wait elsewhere
	case j.name == "" && may:
		return spot{}, nil
	case h != nil:
		return n.awaitHolding(ctx, h)
	case state != leaseLive:
		return spot{}, draining
	case !may:
		return spot{}, notOwner
	}
	if n.opts.Capacity != nil {
		if used, limit := n.opts.Capacity(); claim && limit > 0 && used >= limit {
			return spot{}, busy
		}
	}
	if !claim {
		opCtx, cancel := n.op(ctx)
		rec, err := n.dir.Get(opCtx, Owners, j.name)
		cancel()
		n.mu.Lock()
		mine := err == nil && decode[ownerRecord](rec.Value).Incarnation == n.lease.incarnation
		n.mu.Unlock()
		if !mine { // else by a write whose answer was lost
			return spot{}, notOwner
		}
	}
	return n.own(ctx, j)
}

// event writes one event.
func (v *visitor) event(kind string, head any, body []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.began {
		v.began = true
		v.w.Header().Set("Content-Type", "text/event-stream")
		v.w.Header().Set("Cache-Control", "no-store")
		v.w.WriteHeader(http.StatusOK)
	}
	if writeEvent(v.w, kind, head, body) == nil {
		_ = http.NewResponseController(v.w).Flush()
	}
}

// asker carries a call's questions to the caller's replica.
type asker struct {
	v    *visitor
	mu   sync.Mutex // protects the fields below
	next int
	open map[int]chan answer
}

// callID names a call here: numbers are the sender's own.
func callID(from string, seq uint64) string { return fmt.Sprint(from, "/", seq) }

// prepare makes a call's progress and questions go to the caller's replica.
func (v *visitor) prepare(call *mcppool.Call) *asker {
	a := &asker{v: v, open: map[int]chan answer{}}
	if v.req.Progress {
		call.OnProgress = func(p mcp.ProgressNotification) { v.event(eventProgress, p, nil) }
	}
	if v.req.Samples || v.req.Elicits {
		call.Handlers = &mcppool.Handlers{}
	}
	if v.req.Samples {
		call.Handlers.Sampling = func(ctx context.Context, from mcppool.Origin, req mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return askBack[mcp.CreateMessageResult](ctx, a, question{Method: string(mcp.MethodSamplingCreateMessage), From: from}, req)
		}
	}
	if v.req.Elicits {
		call.Handlers.Elicitation = func(ctx context.Context, from mcppool.Origin, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
			return askBack[mcp.ElicitationResult](ctx, a, question{Method: string(mcp.MethodElicitationCreate), From: from}, req)
		}
	}
	if call.Handlers != nil {
		v.n.mu.Lock()
		v.n.answers[callID(v.req.From, v.req.Seq)] = a
		v.n.mu.Unlock()
	}
	return a
}

func (a *asker) end() {
	a.v.n.mu.Lock()
	defer a.v.n.mu.Unlock()
	delete(a.v.n.answers, callID(a.v.req.From, a.v.req.Seq))
}

// askBack asks the caller's replica, and waits for its answer.
func askBack[Res any](ctx context.Context, a *asker, q question, req any) (*Res, error) {
	params, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	got := make(chan answer, 1)
	a.mu.Lock()
	a.next++
	q.ID = a.next
	a.open[q.ID] = got
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.open, q.ID)
		a.mu.Unlock()
	}()
	a.v.event(eventAsk, q, params)
	select {
	case ans := <-got:
		if ans.Error != "" {
			return nil, errors.New(ans.Error)
		}
		var res Res
		return &res, json.Unmarshal(ans.Result, &res)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serveAnswer takes an answer to what a server asked.
func (n *Node) serveAnswer(w http.ResponseWriter, r *http.Request) {
	body, ok := n.receive(w, r)
	if !ok {
		return
	}
	var ans answer
	if err := json.Unmarshal(body, &ans); err != nil {
		http.Error(w, "not an answer", http.StatusBadRequest)
		return
	}
	if !n.admit(r.Context(), w, ans.header) {
		return
	}
	n.mu.Lock()
	a := n.answers[callID(ans.From, ans.Call)]
	n.mu.Unlock()
	if a != nil {
		a.mu.Lock()
		if got := a.open[ans.ID]; got != nil {
			delete(a.open, ans.ID)
			got <- ans
		}
		a.mu.Unlock()
	}
	w.WriteHeader(http.StatusNoContent)
}
