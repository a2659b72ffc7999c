package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// patience bounds every wait: a browser on a busy machine is slow to start.
const patience = 60 * time.Second

// browser is a headless Chromium with one page. Its methods are for the
// goroutine of the test, which they end when something fails.
type browser struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex // protects the fields below
	trouble  []string   // errors of the page, and what it wrote to the console
	requests []string   // URLs
}

// openBrowser starts a browser that the test's end closes. It skips the test where
// no Chromium is installed, unless that is a place where nothing may be skipped ($CI).
func openBrowser(t testing.TB) *browser {
	t.Helper()
	program := findProgram("chromium", "chromium-browser", "google-chrome")
	if program == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("no Chromium is installed")
		}
		t.Skip("no Chromium is installed")
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WSURLReadTimeout(patience))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), flags...)
	t.Cleanup(stop)
	b := &browser{TB: t}
	b.ctx, stop = chromedp.NewContext(ctx, chromedp.WithListener(b.heard))
	t.Cleanup(stop)
	// The first action starts the browser, which would end with an action's deadline.
	require.NoError(t, chromedp.Do(b.ctx))
	return b
}

// findProgram returns the first of the names that is installed, or nothing.
func findProgram(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// heard keeps what RequireClean judges. It is called in order, on one goroutine.
func (b *browser) heard(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventExceptionThrown, *runtime.EventConsoleAPICalled, *log.EventEntryAdded:
		text, err := json.Marshal(e)
		b.trouble = append(b.trouble, fmt.Sprintf("%T: %s %v", e, text, err))
	}
}

func (b *browser) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	require.NoError(b, chromedp.Do(ctx, steps...), what)
}

// command makes a step of a command of the protocol whose result says nothing.
func command[P any](c cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// Navigate opens url in the page.
func (b *browser) Navigate(url string) {
	b.Helper()
	b.do(url, chromedp.Navigate(url))
	b.Wait(`document.readyState === "complete"`)
}

// Eval runs an expression in the page and returns its value as JSON.
func (b *browser) Eval(expression string) string {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[[]byte](expression))
	require.NoError(b, err, expression)
	return string(value)
}

// Wait waits until an expression is true.
func (b *browser) Wait(expression string) {
	b.Helper()
	deadline := time.Now().Add(patience)
	for b.Eval("Boolean("+expression+")") != "true" {
		if time.Now().After(deadline) {
			b.Fatalf("never true: %s\npage: %s", expression, b.Eval("document.body.innerText.slice(0, 4000)"))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// key is one that is pressed with all that a page may ask of it.
type key struct {
	name string
	code int64
	text string // that it types, if any
}

var (
	enter  = key{"Enter", 13, "\r"}
	escape = key{"Escape", 27, ""}
	slash  = key{"/", 191, "/"}
)

// Press presses and releases a key. Its text comes with the press, so that a page
// that handles the press can keep the text from being typed.
func (b *browser) Press(k key) {
	b.Helper()
	down := input.DispatchKeyEventParams{
		Type: input.DispatchKeyEventTypeKeyDown, Key: k.name, Code: k.name, WindowsVirtualKeyCode: k.code, Text: k.text,
	}
	up := down
	up.Type, up.Text = input.DispatchKeyEventTypeKeyUp, ""
	b.do("press "+k.name, command(input.DispatchKeyEvent, down), command(input.DispatchKeyEvent, up))
}

// Type types into whatever has the focus.
func (b *browser) Type(text string) {
	b.Helper()
	b.do("type "+text, command(input.InsertText, input.InsertTextParams{Text: text}))
}

// Click scrolls to an element and clicks in its middle.
func (b *browser) Click(selector string) {
	b.Helper()
	b.do("click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// Prefer sets the color scheme that the user prefers: "dark" or "light".
func (b *browser) Prefer(scheme string) {
	b.Helper()
	b.do("prefer "+scheme, command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}))
}

// Desktop makes the window that of a large screen.
func (b *browser) Desktop() {
	b.Helper()
	b.do("desktop", chromedp.EmulateViewport(1280, 900))
}

// Phone makes the window that of a phone.
func (b *browser) Phone() {
	b.Helper()
	b.do("phone", chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
}

// Screenshot writes the whole page to the directory $SCREENSHOTS, for people to
// look at; without one it does nothing.
func (b *browser) Screenshot(name string) {
	b.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	image, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	require.NoError(b, err)
	require.NoError(b, os.WriteFile(filepath.Join(dir, name+".png"), image, 0o644))
}

// RequireClean checks that the page had no error, wrote nothing to the console,
// and asked for nothing whose URL doesn't begin with prefix.
func (b *browser) RequireClean(prefix string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.trouble {
		b.Errorf("%s", trouble)
	}
	for _, url := range b.requests {
		if !strings.HasPrefix(url, prefix) && !strings.HasPrefix(url, "data:") {
			b.Errorf("the page asked for %s", url)
		}
	}
}
