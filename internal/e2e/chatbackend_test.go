package e2e_test

import "testing"

// said returns an expression for whether the conversation on the page contains a text.
func said(text string) string {
	return `document.getElementById("log").innerText.includes(` + quote(text) + `)`
}

func quote(s string) string { return "`" + s + "`" }

func TestTheChatPageWorksByKeyboardAndShowsWhatIsHostileAsText(t *testing.T) {
	b := openBrowser(t)
	url := startExample(t, "chatbackend")
	b.Navigate(url + "/")
	b.Wait(`document.readyState === "complete" && document.querySelectorAll("#chats button").length === 1`)
	b.Wait(`document.activeElement.id === "text"`)

	say := func(line string) {
		b.Wait(`!document.getElementById("send").disabled`)
		b.Type(line)
		b.Press(enter)
	}

	// By keyboard alone.
	say("remember milk")
	b.Wait(said("Done: 1 remembered"))
	say("draw")
	b.Wait(`document.querySelector(".call img")?.naturalWidth === 96`)

	// A second chat, with state of its own, while the first one waits.
	say("wait 600")
	b.Wait(`document.querySelector(".call progress")?.value > 0`)
	b.Wait(`document.getElementById("send").disabled && !document.getElementById("stop").disabled`)
	b.Screenshot("chat-waiting")
	b.Click("#new")
	b.Wait(`document.querySelectorAll("#chats button").length === 2 && !document.getElementById("send").disabled`)
	say("recall")
	b.Wait(said("Done: nothing"))
	b.Click("#chats li:first-child button")
	b.Wait(said("Done: 1 remembered"))
	b.Wait(`document.getElementById("send").disabled`)

	// Stop.
	b.Click("#stop")
	b.Wait(said("Error: MCP tool 'wait' cancelled"))
	b.Wait(said("stopped"))
	b.Wait(`!document.getElementById("send").disabled && document.getElementById("stop").disabled`)
	b.Wait(`document.querySelector(".call progress") === null`)

	// What people and tools write is shown, not run.
	const hostile = `<img src=x onerror=document.title='hacked'><b>bold</b>`
	say("remember " + hostile)
	b.Wait(said("Done: 1 remembered"))
	say("recall")
	b.Wait(said("Done: " + hostile))
	b.Wait(`document.title === "mcppool chat" && document.querySelector("#log b") === null`)
	say("crash")
	b.Wait(said("MCP server stopped during the call"))
	b.Screenshot("chat-light")
	b.Prefer("dark")
	b.Screenshot("chat-dark")
	b.Phone()
	b.Wait(`document.documentElement.scrollWidth <= 390`)
	b.Screenshot("chat-phone")

	b.Click("#delete")
	b.Wait(`document.querySelectorAll("#chats button").length === 1`)
	b.Wait(said("Done: nothing"))
	b.RequireClean(url)
}
