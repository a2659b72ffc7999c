package main

import (
	"testing"
	"time"
)

// said is whether the conversation on the page contains a text.
func said(text string) string {
	return `document.getElementById("log").innerText.includes(` + quote(text) + `)`
}

func quote(s string) string { return "`" + s + "`" }

func TestThePageWorksInABrowser(t *testing.T) {
	b := openBrowser(t)
	r := start(t, time.Minute)
	b.call("Page.navigate", map[string]any{"url": r.url + "/"}, nil)
	b.wait(`document.readyState === "complete" && document.querySelectorAll("#chats button").length === 1`)
	b.wait(`document.activeElement.id === "text"`)

	say := func(line string) {
		b.wait(`!document.getElementById("send").disabled`)
		b.typeLine(line)
	}

	// By keyboard alone.
	say("remember milk")
	b.wait(said("Done: 1 remembered"))
	say("draw")
	b.wait(`document.querySelector(".call img")?.naturalWidth === 96`)

	// A second chat, with state of its own, while the first one waits.
	say("wait 600")
	b.wait(`document.querySelector(".call progress")?.value > 0`)
	b.wait(`document.getElementById("send").disabled && !document.getElementById("stop").disabled`)
	b.screenshot("waiting")
	b.click("#new")
	b.wait(`document.querySelectorAll("#chats button").length === 2 && !document.getElementById("send").disabled`)
	say("recall")
	b.wait(said("Done: nothing"))
	b.click("#chats li:first-child button")
	b.wait(said("Done: 1 remembered"))
	b.wait(`document.getElementById("send").disabled`)

	// Stop.
	b.click("#stop")
	b.wait(said("Error: MCP tool 'wait' cancelled"))
	b.wait(said("stopped"))
	b.wait(`!document.getElementById("send").disabled && document.getElementById("stop").disabled`)
	b.wait(`document.querySelector(".call progress") === null`)

	// What people and tools write is shown, not run.
	const hostile = `<img src=x onerror=document.title='hacked'><b>bold</b>`
	say("remember " + hostile)
	b.wait(said("Done: 1 remembered"))
	say("recall")
	b.wait(said("Done: " + hostile))
	b.wait(`document.title === "mcppool chat" && document.querySelector("#log b") === null`)
	say("crash")
	b.wait(said("MCP server stopped during the call"))
	b.screenshot("light")
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]any{{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
	b.screenshot("dark")
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": true}, nil)
	b.wait(`document.documentElement.scrollWidth <= 390`)
	b.screenshot("phone")

	b.click("#delete")
	b.wait(`document.querySelectorAll("#chats button").length === 1`)
	b.wait(said("Done: nothing"))
	b.requireClean(r.url)
}
