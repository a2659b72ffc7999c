// Package looptest is what the tests of modules for model APIs share: an MCP server
// with a camera, and a model API that answers from a script.
package looptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

const serverEnv = "MCPPOOL_LOOP_SERVER"

// PNG is the beginning of an image, in base64. It is what the camera takes.
const PNG = "iVBORw0KGgo="

// tools are those of the camera. Each API takes the names of some of the properties and
// refuses others.
const tools = `{"tools":[
	{"name":"snapshot","description":"Takes a picture.","inputSchema":{"type":"object","properties":{
		"room":{"type":"string","description":"where","enum":["kitchen","hall"]},
		"$width":{"type":["integer","null"],"minimum":1,"maximum":4096},
		"tags":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"object","additionalProperties":false}]}}
	},"required":["room"],"additionalProperties":false}},
	{"name":"status","inputSchema":{"type":"object"}}
]}`

// ServeIfAsked makes the process a camera when it was started as one, and ends it with
// its input. It is for TestMain.
func ServeIfAsked() {
	if os.Getenv(serverEnv) == "" {
		return
	}
	serve(os.Stdin, os.Stdout)
	os.Exit(0) //nolint:forbidigo // it is the main function of this process
}

// serve counts the pictures: that is the state of a session.
func serve(from io.Reader, to io.Writer) {
	taken := 0
	for in := bufio.NewScanner(from); in.Scan(); {
		var r struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments map[string]any
			}
		}
		if json.Unmarshal(in.Bytes(), &r) != nil || r.ID == nil {
			continue
		}
		member := "result"
		var answer string
		switch {
		case r.Method == "initialize":
			answer = `{"protocolVersion":"2025-06-18","serverInfo":{"name":"camera","version":"1"},"capabilities":{"tools":{}}}`
		case r.Method == "tools/list":
			answer = oneLine(tools)
		case r.Method == "tools/call" && r.Params.Name == "snapshot":
			taken++
			text, err := json.Marshal(fmt.Sprintf("picture %d, of %v, width %v", taken, r.Params.Arguments["room"], r.Params.Arguments["$width"]))
			if err != nil {
				panic("bug: " + err.Error()) // there is no such string
			}
			answer = fmt.Sprintf(`{"content":[{"type":"text","text":%s},{"type":"image","mimeType":"image/png","data":%q}]}`, text, PNG)
		case r.Method == "tools/call":
			answer = `{"content":[{"type":"text","text":"the lens is dirty"}],"isError":true}`
		default:
			member, answer = "error", `{"code":-32601,"message":"no such method"}`
		}
		fmt.Fprintf(to, `{"jsonrpc":"2.0","id":%s,"%s":%s}`+"\n", r.ID, member, answer)
	}
}

func oneLine(s string) string {
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		panic("bug: " + err.Error())
	}
	line, err := json.Marshal(v)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return string(line)
}

// Camera is the server, as a child process: the test binary again, whose TestMain calls
// [ServeIfAsked].
func Camera() mcppool.Server {
	// A binary built with -race would sleep a second at its exit.
	return mcppool.Server{Command: os.Args[0], Env: map[string]string{serverEnv: "1", "GORACE": "atexit_sleep_ms=0"}}
}

// Box is a box with the camera in it; done closes it and its pool.
func Box() (box *toolbox.Box, done func(), err error) {
	catalog, err := toolbox.NewStaticCatalog(toolbox.Entry{ID: "camera", Server: Camera()})
	if err != nil {
		return nil, nil, err
	}
	pool, err := mcppool.New(nil)
	if err != nil {
		return nil, nil, err
	}
	box, err = toolbox.New(pool, catalog, nil)
	if err != nil {
		return nil, nil, err
	}
	return box, func() { _, _ = box.Close(), pool.Close() }, nil
}

// Model is an API at URL that answers each request with the next of its answers, and
// with status 500 once there is none. Its Close ends it.
type Model struct {
	*httptest.Server

	mu       sync.Mutex // protects the fields below
	answers  []string
	requests [][]byte
}

// NewModel starts a model. The answers are JSON.
func NewModel(answers ...string) *Model {
	m := &Model{answers: answers}
	m.Server = httptest.NewServer(m)
	return m
}

// ServeHTTP answers the next request of the model.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil || len(m.answers) == 0 {
		http.Error(w, `{"error":{"message":"the script is over"}}`, http.StatusInternalServerError)
		return
	}
	m.requests = append(m.requests, body)
	answer := m.answers[0]
	m.answers = m.answers[1:]
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, answer)
}

// Member returns a member of a request that came, as JSON; nil when there is none.
func (m *Model) Member(request int, member string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	var members map[string]json.RawMessage
	if request >= len(m.requests) || json.Unmarshal(m.requests[request], &members) != nil {
		return nil
	}
	return members[member]
}
