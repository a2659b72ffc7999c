package main

import (
	"context"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

//go:embed page
var page embed.FS

// backend holds the turns under way. What a chat's tools remember lives in the
// pool's sessions; what was said, in the browser.
type backend struct {
	debug http.Handler // the live page of the pool; nil for none
	pool  *mcppool.Pool
	box   *toolbox.Box

	mu    sync.Mutex // protects the field below
	turns map[string]*turn
}

// turn is one message of the user and what comes of it.
type turn struct {
	events chan event
	cancel context.CancelFunc
}

// event is one server-sent event.
type event struct {
	name string
	data any
}

func newBackend(pool *mcppool.Pool, catalog toolbox.Catalog) (*backend, error) {
	b := &backend{pool: pool, turns: make(map[string]*turn)}
	var err error
	b.box, err = toolbox.New(pool, catalog, &toolbox.Options{CallTimeout: 2 * time.Minute, OnProgress: b.progress})
	return b, err
}

func (b *backend) handler() http.Handler {
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic("bug: " + err.Error())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("POST /chats/{chat}/turn", b.serveTurn)
	mux.HandleFunc("POST /chats/{chat}/stop", b.serveStop)
	mux.HandleFunc("DELETE /chats/{chat}", b.serveDelete)
	if b.debug != nil { // it brings a stricter policy of its own
		mux.Handle("GET /debug/pool/", b.debug)
		mux.Handle("POST /debug/pool/", b.debug)
	}
	// Another site's page must not make the user's browser talk to the tools.
	guarded := http.NewCrossOriginProtection().Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src data:; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		guarded.ServeHTTP(w, r)
	})
}

var chatID = regexp.MustCompile(`^[a-zA-Z0-9-]{1,64}$`)

// chat is the chat that a request is about, with an answer when it isn't valid.
func chat(w http.ResponseWriter, r *http.Request) (string, bool) {
	id := r.PathValue("chat")
	if !chatID.MatchString(id) {
		http.Error(w, "not a chat's id", http.StatusBadRequest)
		return "", false
	}
	return id, true
}

func conversation(chat string) toolbox.Conversation {
	return toolbox.Conversation{Project: "chatbackend", Thread: chat}
}

// serveTurn runs a turn and streams its events. The turn ends with the request:
// when the browser leaves, its calls are cancelled.
func (b *backend) serveTurn(w http.ResponseWriter, r *http.Request) {
	id, ok := chat(w, r)
	if !ok {
		return
	}
	var body struct{ Text string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&body); err != nil {
		http.Error(w, "the body isn't {\"text\": ...}", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	t := &turn{events: make(chan event, 64), cancel: cancel}
	if !b.begin(id, t) {
		http.Error(w, "a turn of this chat is under way", http.StatusConflict)
		return
	}
	defer b.end(id)

	done := make(chan struct{})
	go func() {
		defer close(done)
		b.converse(ctx, t, conversation(id), body.Text)
	}()
	s := newStream(w)
	for {
		select {
		case e := <-t.events:
			s.send(e, cancel)
		case <-done:
			for len(t.events) > 0 {
				s.send(<-t.events, cancel)
			}
			return
		}
	}
}

func (b *backend) begin(chat string, t *turn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.turns[chat] != nil {
		return false
	}
	b.turns[chat] = t
	return true
}

func (b *backend) end(chat string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.turns, chat)
}

func (b *backend) turn(chat string) *turn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.turns[chat]
}

// serveStop is the Stop button.
func (b *backend) serveStop(w http.ResponseWriter, r *http.Request) {
	id, ok := chat(w, r)
	if !ok {
		return
	}
	if t := b.turn(id); t != nil {
		t.cancel()
	}
	w.WriteHeader(http.StatusNoContent)
}

// serveDelete ends a chat: its turn, and the servers that hold its state.
func (b *backend) serveDelete(w http.ResponseWriter, r *http.Request) {
	id, ok := chat(w, r)
	if !ok {
		return
	}
	if t := b.turn(id); t != nil {
		t.cancel()
	}
	b.pool.CloseScope(conversation(id).Scope())
	b.box.Forget(conversation(id))
	w.WriteHeader(http.StatusNoContent)
}

// maxRounds keeps a model that never stops calling from running for ever.
const maxRounds = 10

// converse asks the model, runs its calls, and asks again with the results.
func (b *backend) converse(ctx context.Context, t *turn, conv toolbox.Conversation, text string) {
	tools, err := b.box.ToolsFor(ctx, conv)
	if err != nil {
		t.finish(ctx, "the list of tools can't be read")
		return
	}
	var results []toolbox.Output
	for range maxRounds {
		answer, calls := model(tools, text, results)
		if len(calls) == 0 {
			t.finish(ctx, answer)
			return
		}
		for _, c := range calls {
			t.events <- event{"call", map[string]string{"id": c.ID, "name": c.Name, "args": string(c.Args)}}
		}
		results = b.box.DispatchAll(ctx, calls, conv)
		for i, out := range results {
			t.events <- event{"result", resultOf(calls[i].ID, out)}
		}
		if ctx.Err() != nil {
			break
		}
	}
	t.finish(ctx, "I gave up.")
}

// finish is the last event of a turn.
func (t *turn) finish(ctx context.Context, answer string) {
	if errors.Is(ctx.Err(), context.Canceled) {
		t.events <- event{"stopped", struct{}{}}
		return
	}
	t.events <- event{"answer", map[string]string{"text": answer}}
}

func resultOf(id string, out toolbox.Output) map[string]any {
	var images []string
	for _, m := range out.Images {
		images = append(images, "data:"+m.MIMEType+";base64,"+base64.StdEncoding.EncodeToString(m.Data))
	}
	return map[string]any{"id": id, "text": out.Text, "isError": out.IsError, "images": images}
}

// progress passes a call's progress on to its turn. It drops what the browser
// doesn't take in time rather than hold the server up.
func (b *backend) progress(conv toolbox.Conversation, call toolbox.ToolCall, n mcp.ProgressNotification) {
	t := b.turn(conv.Thread)
	if t == nil {
		return
	}
	p := n.Params
	select {
	case t.events <- event{"progress", map[string]any{"id": call.ID, "progress": p.Progress, "total": p.Total, "message": p.Message}}:
	default:
	}
}

// stream writes server-sent events.
type stream struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	failed bool
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events back
	return &stream{w: w, rc: http.NewResponseController(w)}
}

// writeTimeout bounds how long a browser may take for one event.
const writeTimeout = 10 * time.Second

// send writes one event; when that fails it calls cancel, and does nothing any
// more.
func (s *stream) send(e event, cancel func()) {
	if s.failed {
		return
	}
	data, err := json.Marshal(e.data)
	if err != nil {
		panic("bug: " + err.Error())
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer can
	_, err = s.w.Write([]byte("event: " + e.name + "\ndata: " + string(data) + "\n\n"))
	if err == nil {
		err = s.rc.Flush()
	}
	if err != nil {
		s.failed = true
		cancel()
	}
}
