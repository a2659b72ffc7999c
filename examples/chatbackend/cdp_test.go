package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// browser is a headless Chromium with one page, driven by the DevTools protocol
// over two pipes: https://chromedevtools.github.io/devtools-protocol/.
type browser struct {
	t       *testing.T
	in      *os.File
	session string // of the page

	mu      sync.Mutex // protects the fields below
	lastID  int
	pending map[int]chan reply
	events  []cdpMessage
}

type cdpMessage struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
}

type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// openBrowser skips the test where no Chromium is installed, unless that is a
// place where nothing may be skipped ($CI).
func openBrowser(t *testing.T) *browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			program = p
			break
		}
	}
	if program == "" {
		require.Empty(t, os.Getenv("CI"), "no Chromium is installed")
		t.Skip("no Chromium is installed")
	}
	toRead, in, err := os.Pipe()
	require.NoError(t, err)
	out, toWrite, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{toRead, toWrite} // 3 and 4, as the flag has it
	require.NoError(t, cmd.Start())
	require.NoError(t, toRead.Close())
	require.NoError(t, toWrite.Close())
	b := &browser{t: t, in: in, pending: make(map[int]chan reply)}
	var reader sync.WaitGroup
	reader.Go(func() { b.read(out) })
	t.Cleanup(func() {
		b.session = ""
		b.call("Browser.close", nil, nil)
		_ = cmd.Wait() // how it ends is its own business
		reader.Wait()
		_, _ = in.Close(), out.Close()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

func (b *browser) read(out *os.File) {
	in := bufio.NewReader(out)
	for {
		raw, err := in.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, c := range b.pending {
				close(c)
			}
			b.pending = nil
			return
		}
		var m struct {
			cdpMessage
			reply
		}
		if json.Unmarshal(bytes.TrimSuffix(raw, []byte{0}), &m) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.pending[m.ID]; c != nil && m.ID != 0 {
			delete(b.pending, m.ID)
			c <- m.reply
		} else {
			b.events = append(b.events, m.cdpMessage)
		}
		b.mu.Unlock()
	}
}

// call sends one command and waits for its result.
func (b *browser) call(method string, params any, result any) {
	b.t.Helper()
	answer := make(chan reply, 1)
	b.mu.Lock()
	if b.pending == nil {
		b.mu.Unlock()
		b.t.Fatal("the browser has ended")
	}
	b.lastID++
	id := b.lastID
	b.pending[id] = answer
	b.mu.Unlock()
	message := map[string]any{"id": id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	require.NoError(b.t, err)
	_, err = b.in.Write(append(text, 0))
	require.NoError(b.t, err)
	select {
	case r, ok := <-answer:
		if !ok {
			if method == "Browser.close" {
				return
			}
			b.t.Fatalf("%s: the browser has ended", method)
		}
		if r.Error != nil {
			b.t.Fatalf("%s: %s", method, r.Error.Message)
		}
		if result != nil {
			require.NoError(b.t, json.Unmarshal(r.Result, result))
		}
	case <-time.After(30 * time.Second):
		b.t.Fatalf("%s: no answer", method)
	}
}

// eval runs an expression in the page and gives its value as JSON.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	require.Empty(b.t, string(r.ExceptionDetails), expression)
	return string(r.Result.Value)
}

// wait waits until an expression is true.
func (b *browser) wait(expression string) {
	b.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for b.eval("Boolean("+expression+")") != "true" {
		if time.Now().After(deadline) {
			b.t.Fatalf("never true: %s\npage: %s", expression, b.eval("document.body.innerText"))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// press presses and releases a key.
func (b *browser) press(key string, code int, text string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
		if kind == "keyDown" && text != "" {
			params["text"] = text
		}
		b.call("Input.dispatchKeyEvent", params, nil)
	}
}

// typeLine types into whatever has the focus, and presses Enter.
func (b *browser) typeLine(text string) {
	b.t.Helper()
	b.call("Input.insertText", map[string]any{"text": text}, nil)
	b.press("Enter", 13, "\r")
}

// click clicks in the middle of an element.
func (b *browser) click(selector string) {
	b.t.Helper()
	var at struct{ X, Y float64 }
	require.NoError(b.t, json.Unmarshal([]byte(b.eval(fmt.Sprintf(
		`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return {x: r.x + r.width/2, y: r.y + r.height/2}; })()`, selector))), &at))
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// screenshot writes the page to $SCREENSHOTS, for people to look at.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	var shot struct{ Data []byte }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	require.NoError(b.t, os.WriteFile(dir+"/"+name+".png", shot.Data, 0o644))
}

// requireClean checks that the page had no error and asked nobody but url.
func (b *browser) requireClean(url string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		switch e.Method {
		case "Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled":
			b.t.Errorf("%s: %s", e.Method, e.Params)
		case "Network.requestWillBeSent":
			var p struct{ Request struct{ URL string } }
			require.NoError(b.t, json.Unmarshal(e.Params, &p))
			if u := p.Request.URL; !strings.HasPrefix(u, url+"/") && !strings.HasPrefix(u, "data:") {
				b.t.Errorf("the page asked for %s", u)
			}
		}
	}
}
