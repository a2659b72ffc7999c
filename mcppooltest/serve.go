package mcppooltest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// message is a JSON-RPC message as it comes in.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

type server struct {
	modes
	calls sync.WaitGroup

	write sync.Mutex // one message at a time

	mu      sync.Mutex // protects the fields below
	count   int
	notes   []string
	seen    []string // notifications, with the id that a cancellation names
	asked   map[string]chan message
	started bool // initialize was answered
}

func newServer(m modes) *server {
	return &server{modes: m, asked: make(map[string]chan message)}
}

func (s *server) run() {
	time.AfterFunc(lifetime, func() { os.Exit(9) })
	time.Sleep(s.duration("slowstart"))
	if s.modes["die"] == "start" {
		s.die()
	}
	if s.has("ignoreterm") {
		signal.Ignore(syscall.SIGTERM)
	}
	if s.has("setsid") {
		startSleeper(false)
	}
	if s.has("stderr") {
		line := strings.Repeat("e", 99) + "\n"
		for n := s.number("stderr"); n > 0; n -= len(line) {
			fmt.Fprint(os.Stderr, line)
		}
		fmt.Fprintln(os.Stderr, "end of flood")
	}
	if s.has("early") {
		s.notify("notifications/message", map[string]any{"level": "info", "data": "early"})
		s.notify("notifications/tools/list_changed", nil)
	}
	s.serve()
	if s.has("ignoreeof") {
		time.Sleep(lifetime)
	}
	s.calls.Wait()
	time.Sleep(s.duration("slowexit"))
}

func (s *server) serve() {
	in := bufio.NewReader(os.Stdin)
	for n := 0; ; n++ {
		if s.has("stopreading") && n == s.number("stopreading") {
			time.Sleep(lifetime)
		}
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			s.send([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`))
			continue
		}
		s.take(m)
	}
}

func (s *server) take(m message) {
	switch {
	case m.Method == "" && m.ID != nil:
		s.mu.Lock()
		ch := s.asked[string(m.ID)]
		s.mu.Unlock()
		if ch != nil {
			ch <- m
		}
	case m.ID == nil:
		s.notified(m)
	case m.Method == "initialize":
		if s.modes["die"] == "handshake" {
			s.die()
		}
		s.started = true
		s.answer(m.ID, map[string]any{
			"protocolVersion": "2025-06-18",
			"capabilities":    map[string]any{"tools": map[string]any{"listChanged": true}},
			"serverInfo":      map[string]any{"name": "mcppooltest", "version": "1"},
		})
	case m.Method == "ping":
		s.answer(m.ID, struct{}{})
	case m.Method == "tools/list":
		s.answer(m.ID, toolList())
	case m.Method == "tools/call":
		if s.modes["die"] == "call" {
			s.die()
		}
		if s.has("closein") {
			os.Stdin.Close()
			fmt.Fprintln(os.Stderr, "stdin closed")
			time.Sleep(lifetime)
		}
		if !s.has("silent") {
			s.calls.Go(func() { s.call(m) })
		}
	case s.has("strict"):
		fmt.Fprintln(os.Stderr, "unknown method", m.Method)
		os.Exit(5)
	case !s.has("mute"):
		s.fail(m.ID, -32601, "method not found")
	}
}

func (s *server) notified(m message) {
	if m.Method == "notifications/initialized" && s.modes["die"] == "initialized" {
		s.die()
	}
	if s.has("refusenotes") {
		s.send([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found: ` + m.Method + `"}}`))
		s.send([]byte(`{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found: ` + m.Method + `"}}`))
	}
	entry := m.Method
	if m.Method == "notifications/cancelled" {
		var p struct{ RequestID json.RawMessage }
		_ = json.Unmarshal(m.Params, &p)
		entry += " " + string(p.RequestID)
	}
	s.mu.Lock()
	s.seen = append(s.seen, entry)
	s.mu.Unlock()
	if path := os.Getenv("MCPPOOLTEST_LOG"); path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, entry)
			f.Close()
		}
	}
}

func (s *server) die() {
	fmt.Fprintln(os.Stderr, "fatal: no database")
	os.Exit(3)
}

func (s *server) answer(id json.RawMessage, result any) {
	s.encode(map[string]any{"jsonrpc": "2.0", "id": s.mangle(id), "result": result})
}

func (s *server) fail(id json.RawMessage, code int, text string) {
	s.encode(map[string]any{"jsonrpc": "2.0", "id": s.mangle(id), "error": map[string]any{"code": code, "message": text}})
}

func (s *server) notify(method string, params any) {
	m := map[string]any{"jsonrpc": "2.0", "method": method}
	if params != nil {
		m["params"] = params
	}
	s.encode(m)
}

func (s *server) mangle(id json.RawMessage) json.RawMessage {
	switch {
	case s.has("stringid"):
		return json.RawMessage(`"` + string(id) + `"`)
	case s.has("floatid"):
		return json.RawMessage(string(id) + ".0")
	}
	return id
}

func (s *server) encode(v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	s.send(raw)
}

// send writes one message with all that the modes put around it, in one write.
func (s *server) send(raw []byte) {
	var b bytes.Buffer
	if s.has("noise") {
		b.WriteString("INFO starting up\n{\"level\":\"info\",\"msg\":\"no message\"}\nnull\n{}\n[1,\xff\xfe\n")
	}
	if s.has("oldlog") {
		for id := range 20 {
			fmt.Fprintf(&b, `[yesterday] < {"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"of yesterday"}]}}`+"\n", id)
		}
	}
	if s.has("blank") {
		b.WriteString("\n \r\n")
	}
	if s.has("bom") {
		b.WriteString("\xef\xbb\xbf")
	}
	switch {
	case s.has("batch"):
		fmt.Fprintf(&b, `[%s,{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"batched"}}]`, raw)
	case s.has("glued"):
		fmt.Fprintf(&b, `log: sending %s{"jsonrpc":"2.0","id":987654,"result":{}}`, raw)
	default:
		b.Write(raw)
	}
	if s.has("crlf") {
		b.WriteByte('\r')
	}
	b.WriteByte('\n')
	s.raw(b.Bytes())
}

func (s *server) raw(b []byte) {
	s.write.Lock()
	defer s.write.Unlock()
	_, _ = os.Stdout.Write(b)
}
