package browsertest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcppool/mcppool/internal/browsertest"
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
	b := browsertest.Open(c)
	b.Navigate(srv.URL + "/in/")
	b.Click("input")
	b.Type("typed")
	b.Wait(`document.querySelector("input").value === "typed"`)
	b.RequireClean(srv.URL + "/in/")
	if c.n != 0 {
		t.Fatalf("%d complaints about a clean page", c.n)
	}
	for _, dirty := range []string{`console.log("x")`, `fetch("/out/").then(() => 0)`, `void setTimeout(() => { throw 1 })`} {
		before := c.n
		b.Eval(dirty)
		b.Wait("true")
		b.RequireClean(srv.URL + "/in/")
		if c.n == before {
			t.Errorf("no complaint about %s", dirty)
		}
	}
}
