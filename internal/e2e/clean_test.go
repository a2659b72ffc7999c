package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// complaints is a test that may fail without failing the one that runs it.
type complaints struct {
	testing.TB
	n int
}

func (c *complaints) Helper()               {}
func (c *complaints) Errorf(string, ...any) { c.n++ }

func TestCleanMeansNoErrorNoConsoleAndNoRequestToElsewhere(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/in/" {
			_, _ = w.Write([]byte(`<!doctype html><link rel="icon" href="data:,"><title>t</title><input>`))
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer srv.Close()
	c := &complaints{TB: t}
	b := openBrowser(c)
	b.Navigate(srv.URL + "/in/")
	b.Click("input")
	b.Type("typed")
	b.Wait(`document.querySelector("input").value === "typed"`)
	b.RequireClean(srv.URL + "/in/")
	require.Zero(t, c.n, "complaints about a clean page")
	for _, dirty := range []string{`console.log("x")`, `fetch("/out/").then(() => 0)`, `void setTimeout(() => { throw 1 })`} {
		before := c.n
		b.Eval(dirty)
		b.Wait("true")
		b.RequireClean(srv.URL + "/in/")
		require.Greater(t, c.n, before, "no complaint about %s", dirty)
		b.forget()
	}
}

// forget forgets what a page did.
func (b *browser) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trouble, b.requests = nil, nil
}
