package mcppooltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// arguments are those of all tools.
type arguments struct {
	Text   string `json:"text"`
	N      int    `json:"n"`
	MS     int    `json:"ms"`
	Method string `json:"method"`

	Before []json.RawMessage `json:"before"`
	Result json.RawMessage   `json:"result"`
}

// call runs a tool; [Server] says what each does.
func (s *server) call(m message) {
	var p struct {
		Name string
		Args json.RawMessage `json:"arguments"`
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	var args arguments
	err := json.Unmarshal(m.Params, &p)
	if err == nil && p.Args != nil {
		err = json.Unmarshal(p.Args, &args)
	}
	if err != nil {
		s.fail(m.ID, -32602, err.Error())
		return
	}
	if s.misbehaves() {
		return
	}
	run := tools[p.Name]
	if run == nil {
		s.fail(m.ID, -32602, "unknown tool "+p.Name)
		return
	}
	run(s, &toolCall{id: m.ID, name: p.Name, arguments: args, raw: p.Args, token: p.Meta.ProgressToken})
}

// toolCall is one call of a tool.
type toolCall struct {
	arguments
	id    json.RawMessage
	name  string
	raw   json.RawMessage // the arguments
	token json.RawMessage // nil for none
}

var tools = map[string]func(*server, *toolCall){
	"echo":   func(s *server, c *toolCall) { s.answer(c.id, textResult(c.Text)) },
	"pid":    func(s *server, c *toolCall) { s.answer(c.id, textResult(fmt.Sprint(os.Getpid()))) },
	"big":    func(s *server, c *toolCall) { s.answer(c.id, textResult(filler(c.N))) },
	"ask":    func(s *server, c *toolCall) { s.answer(c.id, textResult(s.ask(c.Method))) },
	"getenv": func(s *server, c *toolCall) { s.answer(c.id, textResult(os.Getenv(c.Text))) },
	"args":   func(s *server, c *toolCall) { s.answer(c.id, textResult(string(c.raw))) },
	"note":   (*server).note,
	"result": (*server).giveResult,
	"count":  (*server).countCalls,
	"seen":   (*server).tellSeen,
	"say": func(s *server, c *toolCall) {
		s.raw([]byte(strings.ReplaceAll(c.Text, "$ID", string(c.id)) + "\n"))
	},
	"sleep": func(s *server, c *toolCall) {
		time.Sleep(time.Duration(c.MS) * time.Millisecond)
		s.answer(c.id, textResult("slept"))
	},
	"error": func(s *server, c *toolCall) {
		s.encode(map[string]any{"jsonrpc": "2.0", "id": s.mangle(c.id), "error": map[string]any{
			"code": -32050, "message": "out of paper", "data": map[string]any{"tray": 2},
		}})
	},
	"fail": func(s *server, c *toolCall) {
		r := textResult("it failed")
		r["isError"] = true
		s.answer(c.id, r)
	},
	"last":       (*server).last,
	"lastdaemon": (*server).last,
	"die":        func(s *server, _ *toolCall) { s.die() },
	"daemon": func(s *server, _ *toolCall) {
		startSleeper(true)
		s.die()
	},
	"notify": (*server).notifyProgress,
	"storm":  (*server).storm,
	"pings": func(s *server, c *toolCall) {
		for i := range c.N {
			s.encode(map[string]any{"jsonrpc": "2.0", "id": fmt.Sprint("p", i), "method": "ping"})
		}
		s.answer(c.id, textResult("pinged"))
	},
	"stderr": func(s *server, c *toolCall) {
		fmt.Fprintln(os.Stderr, c.Text)
		s.answer(c.id, textResult("written"))
	},
	"junk": func(s *server, c *toolCall) {
		s.raw([]byte(strings.Repeat("no message\n", c.N)))
		s.answer(c.id, textResult("babbled"))
	},
}

func filler(n int) string { return strings.Repeat("0123456789abcde ", n/16+1)[:n] }

func (s *server) countCalls(c *toolCall) {
	s.mu.Lock()
	s.count++
	n := s.count
	s.mu.Unlock()
	s.answer(c.id, textResult(fmt.Sprint(n)))
}

// note answers with all notes so far.
func (s *server) note(c *toolCall) {
	s.mu.Lock()
	s.notes = append(s.notes, c.Text)
	all := strings.Join(s.notes, "\n")
	s.mu.Unlock()
	s.answer(c.id, textResult(all))
}

// giveResult answers as the caller says.
func (s *server) giveResult(c *toolCall) {
	for _, raw := range c.Before {
		s.raw(append(bytes.ReplaceAll(raw, []byte(`"%TOKEN%"`), orNull(c.token)), '\n'))
	}
	s.answer(c.id, c.Result)
}

func (s *server) tellSeen(c *toolCall) {
	s.mu.Lock()
	all := strings.Join(s.seen, "\n")
	s.mu.Unlock()
	s.answer(c.id, textResult(all))
}

func (s *server) last(c *toolCall) {
	raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "result": textResult("last" + strings.Repeat("x", c.N))})
	if !s.has("nonewline") {
		raw = append(raw, '\n')
	}
	if c.name == "lastdaemon" {
		startSleeper(true)
	}
	s.raw(raw)
	os.Exit(0)
}

func (s *server) notifyProgress(c *toolCall) {
	var b []byte
	for i := range c.N {
		b = fmt.Appendf(b, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`+"\n",
			orNull(c.token), i+1)
	}
	raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "result": textResult("notified")})
	s.raw(append(append(b, raw...), '\n'))
}

func (s *server) storm(c *toolCall) {
	for i := range c.N {
		s.notify("notifications/message", map[string]any{"level": "info", "data": i})
	}
	s.notify("notifications/tools/list_changed", nil)
	s.answer(c.id, textResult("stormed"))
}

// misbehaves does what the server does in place of every call, if its mode has such
// a thing.
func (s *server) misbehaves() bool {
	switch {
	case s.has("closeout"):
		os.Stdout.Close()
	case s.has("nullid"):
		s.send([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"can't read that"}}`))
	case s.has("bigline"):
		chunk := []byte(strings.Repeat("x", 1<<20))
		for n := s.number("bigline"); n > 0; n -= len(chunk) {
			s.raw(chunk)
		}
	default:
		return false
	}
	return true
}

func textResult(text string) map[string]any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// ask sends a request to the client and returns the answer's result or error.
func (s *server) ask(method string) string {
	s.mu.Lock()
	id := fmt.Sprintf(`"ask-%d"`, len(s.asked))
	ch := make(chan message, 1)
	s.asked[id] = ch
	s.mu.Unlock()
	s.encode(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": map[string]any{}})
	m := <-ch
	if m.Error != nil {
		return "error " + string(m.Error)
	}
	return "result " + string(m.Result)
}
