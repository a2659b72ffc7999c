package hostile

import (
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
}

// call runs a tool:
//
//	echo {text}    the text
//	count          how often it was called, the first time 1
//	pid            of the server's own process
//	big {n}        a text of so many bytes
//	sleep {ms}     answers late
//	seen           the notifications so far
//	error          a JSON-RPC error with data
//	fail           a result with isError
//	last {n}       answers, "last" and n more bytes, and exits with code 0
//	die            exits with code 3
//	daemon         exits with code 3 and leaves a daemon that holds the pipes
//	lastdaemon     answers, and then as daemon
//	notify {n}     so many progress notifications and then the answer, in one write
//	storm {n}      so many log notifications, then a tools/list_changed
//	ask {method}   asks the client, and answers with what it said
//	pings {n}      pings the client so often without waiting
//	stderr {text}  writes it to stderr
//	junk {n}       so many lines that are no message
//	say {text}     writes the text in place of an answer, with the request's id for $ID
func (s *server) call(m message) {
	var p struct {
		Name string
		Args arguments `json:"arguments"`
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		s.fail(m.ID, -32602, err.Error())
		return
	}
	if s.misbehaves() {
		return
	}
	a := p.Args
	text := func(t string) { s.answer(m.ID, textResult(t)) }
	switch p.Name {
	case "echo":
		text(a.Text)
	case "say":
		s.raw([]byte(strings.ReplaceAll(a.Text, "$ID", string(m.ID)) + "\n"))
	case "count":
		s.mu.Lock()
		s.count++
		n := s.count
		s.mu.Unlock()
		text(fmt.Sprint(n))
	case "pid":
		text(fmt.Sprint(os.Getpid()))
	case "big":
		text(strings.Repeat("0123456789abcde ", a.N/16+1)[:a.N])
	case "sleep":
		time.Sleep(time.Duration(a.MS) * time.Millisecond)
		text("slept")
	case "seen":
		s.mu.Lock()
		all := strings.Join(s.seen, "\n")
		s.mu.Unlock()
		text(all)
	case "error":
		s.encode(map[string]any{"jsonrpc": "2.0", "id": s.mangle(m.ID), "error": map[string]any{
			"code": -32050, "message": "out of paper", "data": map[string]any{"tray": 2},
		}})
	case "fail":
		r := textResult("it failed")
		r["isError"] = true
		s.answer(m.ID, r)
	case "last", "lastdaemon":
		raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": textResult("last" + strings.Repeat("x", a.N))})
		if !s.has("nonewline") {
			raw = append(raw, '\n')
		}
		if p.Name == "lastdaemon" {
			startSleeper(true)
		}
		s.raw(raw)
		os.Exit(0)
	case "die":
		s.die()
	case "daemon":
		startSleeper(true)
		s.die()
	case "notify":
		var b []byte
		for i := range a.N {
			b = fmt.Appendf(b, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`+"\n",
				orNull(p.Meta.ProgressToken), i+1)
		}
		raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": textResult("notified")})
		s.raw(append(append(b, raw...), '\n'))
	case "storm":
		for i := range a.N {
			s.notify("notifications/message", map[string]any{"level": "info", "data": i})
		}
		s.notify("notifications/tools/list_changed", nil)
		text("stormed")
	case "ask":
		text(s.ask(a.Method))
	case "pings":
		for i := range a.N {
			s.encode(map[string]any{"jsonrpc": "2.0", "id": fmt.Sprint("p", i), "method": "ping"})
		}
		text("pinged")
	case "stderr":
		fmt.Fprintln(os.Stderr, a.Text)
		text("written")
	case "junk":
		s.raw([]byte(strings.Repeat("no message\n", a.N)))
		text("babbled")
	default:
		s.fail(m.ID, -32602, "unknown tool "+p.Name)
	}
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
