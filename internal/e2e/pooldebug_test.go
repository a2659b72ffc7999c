package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/pagetest"
	"github.com/mcppool/mcppool/pooldebug"
)

// row finds the row of a session on the page.
func row(id string) string { return fmt.Sprintf(`#sessions tr[data-id=%q]`, id) }

// text returns an expression for the text of the first element that a selector finds.
func text(selector string) string {
	return fmt.Sprintf("(document.querySelector(`%s`)?.innerText ?? '')", selector)
}

const rowsShown = `document.querySelectorAll("#sessions tbody tr[data-id]").length`

func TestThePageInABrowser(t *testing.T) {
	b := openBrowser(t)
	limits := mcppool.Limits{MaxProcesses: 20, MaxPerScope: 3}
	s := pagetest.Show(t, &pooldebug.Options{Actions: true, Interval: 50 * time.Millisecond}, mcppool.Options{Limits: limits})
	b.Desktop()
	b.Navigate(s.URL + "?some=query")
	b.Wait(text("#none") + ` === "No session yet."`)

	t.Run("updates itself", func(t *testing.T) {
		require.NoError(t, s.Call(t, pagetest.Named("alpha"), "one", "t"))
		b.Wait(rowsShown + " === 1")
		b.Wait(text("#servers") + `.includes("alpha")`)
		b.Wait(text("#g-live") + ` === "1"`)
		b.Wait(text("#events") + `.includes("opened")`)
		b.Wait(`document.querySelector("#sessions svg.line rect.connect")`)
		for range 3 {
			require.NoError(t, s.Call(t, pagetest.Named("beta"), "two", "t"))
		}
		b.Wait(rowsShown + " === 2")
		b.Wait(text("#sessions tbody tr .c-calls") + ` === "3"`)
	})

	// While a call is under way, the row says so.
	waiting := make(chan error, 1)
	go func() { waiting <- s.Call(t, pagetest.Named("gamma"), "three", "wait") }()
	b.Wait(text(".state.busy") + ` === "busy" && ` + text("#sessions .tool") + `.startsWith("wait")`)
	b.Wait(text("#g-borrowed") + ` === "1" && ` + text("#g-idle") + ` === "2"`)

	t.Run("sorts by click and by key", func(t *testing.T) {
		first := text("#sessions tbody tr .c-calls")
		b.Click(`#sessions th button[data-sort=calls]`)
		b.Wait(first + ` === "3" && document.querySelector("th[aria-sort=descending]").innerText.includes("Calls")`)
		b.Eval(`document.querySelector("#sessions th button[data-sort=calls]").focus()`)
		b.Press(enter)
		b.Wait(first + ` === "0" && document.querySelector("th[aria-sort=ascending]").innerText.includes("Calls")`)
	})

	t.Run("searches by key", func(t *testing.T) {
		b.Press(slash)
		b.Wait(`document.activeElement.id === "search"`)
		b.Type("BETA")
		b.Wait(rowsShown + " === 1 && " + text("#shown") + ` === "1 of 3"`)
		b.Wait(`document.getElementById("json").search === "?format=json&q=BETA&sort=calls&closed=yes"`)
		b.Type("nothing")
		b.Wait(text("#none") + ` === "No session matches."`)
		b.Press(escape)
		b.Wait(rowsShown + " === 3")
	})

	t.Run("shows hostile names as text", func(t *testing.T) {
		require.Error(t, s.Call(t, pagetest.Named(pagetest.Hostile), pagetest.Hostile, "fail"))
		require.Error(t, s.Call(t, pagetest.Named("broken"), "four", pagetest.Hostile))
		id := ""
		for info := range s.SessionsOf(pagetest.Hostile) {
			id = info.ID
		}
		b.Wait(text("#servers") + ".includes(`<img src=x onerror=`)")
		b.Wait(text("#events") + ".includes(`<img src=x onerror=`)")
		b.Click(row(id) + " .c-session button")
		b.Wait(text("tr.more") + ".includes(`<script>document.title='hacked'`)")
		b.Wait(text("tr.more") + ".includes(`\u241b[31m\ufffd`)") // what is invisible is shown
		b.Wait(`document.title === "mcppool" && !document.querySelector("main img, main script")`)
		// The details stay open and the focus where it is while the page goes on.
		require.NoError(t, s.Call(t, pagetest.Named("delta"), "five", "t"))
		b.Wait(`document.activeElement === document.querySelector('` + row(id) + ` .c-session button')`)
		b.Wait(rowsShown + ` === 6 && document.querySelector("tr.more")`)
		b.Press(enter)
		b.Wait(`!document.querySelector("tr.more")`)
	})

	t.Run("closes a session", func(t *testing.T) {
		id := ""
		for info := range s.SessionsOf("three") {
			id = info.ID
		}
		b.Click(row(id) + " .c-act button")
		b.Wait(text(row(id)+" .c-act") + ` === "Sure?"`)
		b.Wait(`document.querySelector('` + row(id) + ` .c-act button').getAttribute("aria-label").startsWith("Sure? Close session")`)
		select {
		case <-waiting:
			t.Fatal("closed by one click")
		default:
		}
		b.Click(row(id) + " .c-act button")
		require.ErrorIs(t, <-waiting, mcppool.ErrServerClosed)
		b.Wait(text(row(id)+" .state") + ` === "closed: closed by id"`)
		b.Wait(`document.querySelector('` + row(id) + ` rect.end')`)
		b.Wait(text("#status") + ` === "closed 1"`)
		b.Click("#closed")
		b.Wait(`!document.querySelector('` + row(id) + `')`)
		b.Click("#closed")
		b.Wait(`document.querySelector('` + row(id) + `')`)
	})

	t.Run("closes idle ones by key, and pauses", func(t *testing.T) {
		b.Eval(`document.getElementById("idle").focus()`)
		b.Press(enter)
		b.Press(enter)
		b.Wait(text("#g-live") + ` === "0"`)
		b.Click("#pause")
		b.Wait(text("#status") + ` === "paused"`)
		require.NoError(t, s.Call(t, pagetest.Named("epsilon"), "six", "t"))
		b.Click("#pause")
		b.Wait(text("#servers") + `.includes("epsilon")`)
	})

	t.Run("has no button for a server without sessions", func(t *testing.T) {
		s.Page.Trace().BackoffChanged(t.Context(), mcppool.BackoffChangedInfo{Origin: mcppool.Origin{Server: "held"}, State: mcppool.BackoffWaiting, Pause: time.Second})
		shown := `[...document.querySelectorAll("#servers tbody tr")].map((tr) => tr.cells[6].innerText + tr.querySelector("button").checkVisibility()).join()`
		b.Wait(shown + ` === "held offfalse,true"`)
		s.Page.Trace().BackoffChanged(t.Context(), mcppool.BackoffChangedInfo{Origin: mcppool.Origin{Server: "held"}, State: mcppool.BackoffOver})
	})

	t.Run("draws a connect in two parts", func(t *testing.T) {
		trace, from := s.Page.Trace(), mcppool.Origin{SessionID: "pool-x", Server: "s"}
		trace.ProcessStarted(t.Context(), mcppool.ProcessStartedInfo{Origin: from, PID: 1})
		trace.SessionOpened(t.Context(), mcppool.SessionOpenedInfo{Origin: from})
		trace.ConnectEnd(t.Context(), mcppool.ConnectEndInfo{Origin: from, Took: 20 * time.Second})
		trace.CallEnd(t.Context(), mcppool.CallEndInfo{Origin: from, Tool: "t", Outcome: mcppool.OutcomeOK})
		trace.SessionClosed(t.Context(), mcppool.SessionClosedInfo{Origin: from, Reason: mcppool.ReasonIdle, Lived: time.Second})
		both := `.includes(": start of the process 20 s, handshake ")`
		for _, part := range []string{"start", "connect"} {
			b.Wait(`document.querySelector('` + row("pool-x") + ` rect.` + part + ` title')?.textContent` + both)
		}
		b.Wait(`(() => {
			const [start, shake, call] = ["start", "connect", "call"].map((c) => document.querySelector('` + row("pool-x") + ` rect.' + c).getBoundingClientRect());
			return start.width > 5 && shake.width > 1 && Math.abs(start.right - shake.left) < 1 && call.left > shake.right - 0.5; // the call hides nothing
		})()`)
		b.Wait(`document.querySelector('` + row("pool-x") + ` svg').getAttribute("aria-label")` + both)
		b.Click(row("pool-x") + " .c-session button")
		b.Wait(text("tr.more") + both)
	})

	t.Run("shows what servers write, and hides it", func(t *testing.T) {
		b.Wait(text("#left-out") + ` === ""`)
		from := mcppool.Origin{SessionID: "pool-y", Server: "s"}
		s.Page.Trace().Stderr(t.Context(), mcppool.StderrInfo{Origin: from, Line: "  stderr: " + pagetest.Hostile})
		lines := `document.querySelectorAll("#events .of-output").length`
		b.Wait(lines + ` === 1`)
		b.Wait(text("#events .of-output .text") + ".startsWith(`stderr: \"><img src=x onerror=`)")
		b.Wait(text("#events .of-output .text") + ".includes(`\u241b[31m\ufffd`)")
		b.Wait(`document.title === "mcppool" && !document.querySelector("main img, main script")`)
		for range 2000 {
			s.Page.Trace().Junk(t.Context(), mcppool.JunkInfo{Origin: from, Line: "no message", Total: 1})
		}
		b.Wait(text("#left-out") + `.match(/^1,99\d lines of output left out$/)`)
		b.Wait(text("#events") + `.includes("no message")`)
		b.Click("#output")
		b.Wait(`!` + text("#events") + `.match(/no message|stderr:/) && ` + text("#events") + `.includes("opened")`)
		b.Click("#calls")
		b.Wait(`!document.querySelector("#events .of-call")?.checkVisibility()`)
		b.Click("#output")
		b.Wait(text("#events") + `.includes("no message")`)
	})

	t.Run("says bytes so that people can read them", func(t *testing.T) {
		b.Wait(text("#t-bytesSent") + ` === "0 B"`)
		for n, want := range map[int64]string{
			0: "0 B", 999: "999 B", 1000: "1.00 kB", 1234: "1.23 kB", 9994: "9.99 kB", 9996: "10.0 kB", 99949: "99.9 kB", 99951: "100 kB",
			999499: "999 kB", 999500: "1.00 MB", 1 << 30: "1.07 GB", 1<<63 - 1: "9.22 EB",
		} {
			require.Equal(t, `"`+want+`"`, b.Eval(fmt.Sprintf("bytes(%d)", n)), n)
		}
	})
	b.RequireClean(s.URL)
}

func TestAPageWithoutActionsHasNoButtonsThatEndSomething(t *testing.T) {
	b := openBrowser(t)
	s := pagetest.Show(t, &pooldebug.Options{Interval: 50 * time.Millisecond}, mcppool.Options{})
	require.NoError(t, s.Call(t, pagetest.Named("alpha"), "one", "t"))
	b.Navigate(s.URL)
	b.Wait(rowsShown + " === 1")
	b.Wait(`![...document.querySelectorAll("button.danger")].some((x) => x.checkVisibility())`)
	b.RequireClean(s.URL)
}
