// Package browsertest drives a headless Chromium from a test, by the DevTools
// protocol over two pipes: https://chromedevtools.github.io/devtools-protocol/.
package browsertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait: a browser on a busy machine is slow to start.
const patience = 60 * time.Second

// Browser is a headless Chromium with one page. Its methods are for the
// goroutine of the test, which they end when something fails.
type Browser struct {
	t       testing.TB
	in      *os.File
	session string // of the page

	mu      sync.Mutex // protects the fields below
	lastID  int
	pending map[int]chan reply // nil once the browser has ended
	events  []message
}

type message struct {
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

// Open starts a browser that the test's end closes. It skips the test where no
// Chromium is installed, unless that is a place where nothing may be skipped ($CI).
func Open(t testing.TB) *Browser {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a child gets no further pipes here")
	}
	program := find()
	if program == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("no Chromium is installed")
		}
		t.Skip("no Chromium is installed")
	}
	toRead, in, err := os.Pipe()
	must(t, err)
	out, toWrite, err := os.Pipe()
	must(t, err)
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{toRead, toWrite} // 3 and 4, as the flag has it
	must(t, cmd.Start())
	_, _ = toRead.Close(), toWrite.Close()
	b := &Browser{t: t, in: in, pending: make(map[int]chan reply)}
	var reader sync.WaitGroup
	reader.Go(func() { b.read(out) })
	t.Cleanup(func() {
		b.session = ""
		_, _ = b.send("Browser.close", nil) // the browser may end before it answers
		_ = cmd.Wait()                      // how it ends is its own business
		reader.Wait()
		_, _ = in.Close(), out.Close()
	})
	var target struct{ TargetID string }
	b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.Call(domain+".enable", nil, nil)
	}
	return b
}

func find() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	return ""
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *Browser) read(out *os.File) {
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
			message
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
			b.events = append(b.events, m.message)
		}
		b.mu.Unlock()
	}
}

// send sends one command and waits for its reply.
func (b *Browser) send(method string, params any) (reply, error) {
	answer := make(chan reply, 1)
	b.mu.Lock()
	if b.pending == nil {
		b.mu.Unlock()
		return reply{}, fmt.Errorf("%s: the browser has ended", method)
	}
	b.lastID++
	id := b.lastID
	b.pending[id] = answer
	b.mu.Unlock()
	m := map[string]any{"id": id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err != nil {
		return reply{}, err
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		return reply{}, err
	}
	select {
	case r, ok := <-answer:
		switch {
		case !ok:
			return reply{}, fmt.Errorf("%s: the browser has ended", method)
		case r.Error != nil:
			return reply{}, fmt.Errorf("%s: %s", method, r.Error.Message)
		}
		return r, nil
	case <-time.After(patience):
		return reply{}, fmt.Errorf("%s: no answer", method)
	}
}

// Call sends a command of the protocol and decodes its result into what result
// points to, unless that is nil.
func (b *Browser) Call(method string, params any, result any) {
	b.t.Helper()
	r, err := b.send(method, params)
	must(b.t, err)
	if result != nil {
		must(b.t, json.Unmarshal(r.Result, result))
	}
}

// Navigate opens url in the page.
func (b *Browser) Navigate(url string) {
	b.t.Helper()
	var r struct{ ErrorText string }
	b.Call("Page.navigate", map[string]any{"url": url}, &r)
	if r.ErrorText != "" {
		b.t.Fatalf("%s: %s", url, r.ErrorText)
	}
	b.Wait(`document.readyState === "complete"`)
}

// Eval runs an expression in the page and gives its value as JSON.
func (b *Browser) Eval(expression string) string {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.Call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if len(r.ExceptionDetails) > 0 {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	return string(r.Result.Value)
}

// Wait waits until an expression is true.
func (b *Browser) Wait(expression string) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for b.Eval("Boolean("+expression+")") != "true" {
		if time.Now().After(deadline) {
			b.t.Fatalf("never true: %s\npage: %s", expression, b.Eval("document.body.innerText.slice(0, 4000)"))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Press presses and releases a key. Text is what it types, if anything.
func (b *Browser) Press(key string, code int, text string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
		if kind == "keyDown" && text != "" {
			params["text"] = text
		}
		b.Call("Input.dispatchKeyEvent", params, nil)
	}
}

// Enter presses the Enter key.
func (b *Browser) Enter() {
	b.t.Helper()
	b.Press("Enter", 13, "\r")
}

// Type types into whatever has the focus.
func (b *Browser) Type(text string) {
	b.t.Helper()
	b.Call("Input.insertText", map[string]any{"text": text}, nil)
}

// Click scrolls to an element and clicks in its middle.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	var at struct{ X, Y float64 }
	must(b.t, json.Unmarshal([]byte(b.Eval(fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		e.scrollIntoView({block: "center", behavior: "instant"});
		const r = e.getBoundingClientRect();
		return {x: r.x + r.width/2, y: r.y + r.height/2};
	})()`, selector))), &at))
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.Call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// Prefer sets the color scheme that the user prefers: "dark" or "light".
func (b *Browser) Prefer(scheme string) {
	b.t.Helper()
	b.Call("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]any{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil)
}

// Resize makes the window that large, in CSS pixels; a mobile one is a phone.
func (b *Browser) Resize(width, height int, mobile bool) {
	b.t.Helper()
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile,
	}, nil)
}

// Screenshot writes the whole page to the directory $SCREENSHOTS, for people to
// look at; without one it does nothing.
func (b *Browser) Screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	var shot struct{ Data []byte }
	b.Call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot)
	must(b.t, os.WriteFile(filepath.Join(dir, name+".png"), shot.Data, 0o644))
}

// RequireClean checks that the page had no error, wrote nothing to the console,
// and asked for nothing whose URL doesn't begin with prefix.
func (b *Browser) RequireClean(prefix string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		switch e.Method {
		case "Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled":
			b.t.Errorf("%s: %s", e.Method, e.Params)
		case "Network.requestWillBeSent":
			var p struct{ Request struct{ URL string } }
			must(b.t, json.Unmarshal(e.Params, &p))
			if u := p.Request.URL; !strings.HasPrefix(u, prefix) && !strings.HasPrefix(u, "data:") {
				b.t.Errorf("the page asked for %s", u)
			}
		}
	}
}
