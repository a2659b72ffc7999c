package pooldebug_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/browsertest"
	"github.com/mcppool/mcppool/pooldebug"
)

// row finds the row of a session on the page.
func row(id string) string { return fmt.Sprintf(`#sessions tr[data-id=%q]`, id) }

// text gives the text of the first element that a selector finds.
func text(selector string) string {
	return fmt.Sprintf("(document.querySelector(`%s`)?.innerText ?? '')", selector)
}

const rowsShown = `document.querySelectorAll("#sessions tbody tr[data-id]").length`

func TestThePageInABrowser(t *testing.T) {
	b := browsertest.Open(t)
	limits := mcppool.Limits{MaxProcesses: 20, MaxPerScope: 3}
	s := show(t, &pooldebug.Options{
		Actions: true, Interval: 50 * time.Millisecond,
	}, mcppool.Options{Limits: limits})
	b.Resize(1280, 900, false)
	b.Navigate(s.url + "?some=query")
	b.Wait(text("#none") + ` === "No session yet."`)

	t.Run("updates itself", func(t *testing.T) {
		require.NoError(t, s.call(t, named("alpha"), "one", "t"))
		b.Wait(rowsShown + " === 1")
		b.Wait(text("#servers") + `.includes("alpha")`)
		b.Wait(text("#g-live") + ` === "1"`)
		b.Wait(text("#events") + `.includes("opened")`)
		b.Wait(`document.querySelector("#sessions svg.line rect.connect")`)
		for range 3 {
			require.NoError(t, s.call(t, named("beta"), "two", "t"))
		}
		b.Wait(rowsShown + " === 2")
		b.Wait(text("#sessions tbody tr .c-calls") + ` === "3"`)
	})

	// While a call is under way, the row says so.
	waiting := make(chan error, 1)
	go func() { waiting <- s.call(t, named("gamma"), "three", "wait") }()
	b.Wait(text(".state.busy") + ` === "busy" && ` + text("#sessions .tool") + `.startsWith("wait")`)

	t.Run("sorts by click and by key", func(t *testing.T) {
		first := text("#sessions tbody tr .c-calls")
		b.Click(`#sessions th button[data-sort=calls]`)
		b.Wait(first + ` === "3" && document.querySelector("th[aria-sort=descending]").innerText.includes("Calls")`)
		b.Eval(`document.querySelector("#sessions th button[data-sort=calls]").focus()`)
		b.Enter()
		b.Wait(first + ` === "0" && document.querySelector("th[aria-sort=ascending]").innerText.includes("Calls")`)
	})

	t.Run("searches by key", func(t *testing.T) {
		b.Press("/", 191, "/")
		b.Wait(`document.activeElement.id === "search"`)
		b.Type("BETA")
		b.Wait(rowsShown + " === 1 && " + text("#shown") + ` === "1 of 3"`)
		b.Type("nothing")
		b.Wait(text("#none") + ` === "No session matches."`)
		b.Press("Escape", 27, "")
		b.Wait(rowsShown + " === 3")
	})

	t.Run("shows hostile names as text", func(t *testing.T) {
		require.Error(t, s.call(t, named(hostile), hostile, "fail"))
		require.Error(t, s.call(t, named("broken"), "four", hostile))
		id := ""
		for info := range s.SessionsOf(hostile) {
			id = info.ID
		}
		b.Wait(text("#servers") + ".includes(`<img src=x onerror=`)")
		b.Wait(text("#events") + ".includes(`<img src=x onerror=`)")
		b.Click(row(id) + " .c-session button")
		b.Wait(text("tr.more") + ".includes(`<script>document.title='hacked'`)")
		b.Wait(text("tr.more") + ".includes(`\u241b[31m\ufffd`)") // what is invisible is shown
		b.Wait(`document.title === "mcppool" && !document.querySelector("main img, main script")`)
		// The details stay open and the focus where it is while the page goes on.
		require.NoError(t, s.call(t, named("delta"), "five", "t"))
		b.Wait(`document.activeElement === document.querySelector('` + row(id) + ` .c-session button')`)
		b.Wait(rowsShown + ` === 6 && document.querySelector("tr.more")`)
		b.Enter()
		b.Wait(`!document.querySelector("tr.more")`)
	})

	t.Run("closes a session", func(t *testing.T) {
		id := ""
		for info := range s.SessionsOf("three") {
			id = info.ID
		}
		b.Click(row(id) + " .c-act button")
		b.Wait(text(row(id)+" .c-act") + ` === "Sure?"`)
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
		b.Enter()
		b.Enter()
		b.Wait(text("#g-live") + ` === "0"`)
		b.Click("#pause")
		b.Wait(text("#status") + ` === "paused"`)
		require.NoError(t, s.call(t, named("epsilon"), "six", "t"))
		b.Click("#pause")
		b.Wait(text("#servers") + `.includes("epsilon")`)
	})
	b.RequireClean(s.url)
}
