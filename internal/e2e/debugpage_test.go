package e2e_test

import (
	"os"
	"testing"
	"time"
)

func TestTheDebugPageFitsTheScreenInDarkAndLightAndOnAPhone(t *testing.T) {
	b := openBrowser(t)
	url := startExample(t, "debugpage", "-chats", "4")
	b.Desktop()
	b.Navigate(url)
	b.Wait(`document.querySelectorAll("#sessions tbody tr[data-id]").length >= 4 && document.querySelectorAll("#events .of-call").length >= 5`)
	if d, err := time.ParseDuration(os.Getenv("SCREENSHOTS_AFTER")); err == nil {
		time.Sleep(d) // for people: let something happen first
	}
	b.Click("#sessions td.c-session button")
	b.Wait(`document.querySelector("tr.more")`)
	for _, id := range []string{"t-bytesSent", "t-bytesReceived"} {
		b.Wait(`/^[\d.]+ [kM]B$/.test(document.getElementById("` + id + `").innerText)`)
		b.Wait(`/^[\d,]{5,} bytes on the std(in|out) of processes$/.test(document.getElementById("` + id + `").title)`)
	}
	b.Wait(`document.querySelector("#sessions rect.start") && document.querySelector("#events .of-output .text").innerText.length`)
	// Not innerWidth: on a phone that grows with a page that doesn't fit.
	const fits = `document.documentElement.scrollWidth <= `
	for _, scheme := range []string{"light", "dark"} {
		b.Prefer(scheme)
		b.Desktop()
		b.Wait(fits + `1280`)
		b.Screenshot("desktop-" + scheme)
		b.Phone()
		b.Wait(fits + `390 && getComputedStyle(document.querySelector("#sessions thead")).display === "none"`)
		b.Screenshot("phone-" + scheme)
	}
	b.RequireClean(url)
}
