package telemetrytest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcppool/mcppool"
)

// Mark is in each secret of these tests, and in nothing else.
const Mark = "hush"

// secret returns a secret that has the mark more than once, so that a part of it
// shows too, and what gets escaped when it is written.
func secret(name string) string { return Mark + "-" + name + "-" + Mark + `" \<&%-` + Mark }

// RequireNoSecret reports each line of what went out that has the mark in it.
func RequireNoSecret(t testing.TB, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if i := strings.Index(line, Mark); i >= 0 {
			t.Errorf("leak: …%q…", line[max(0, i-80):min(len(line), i+80)])
		}
	}
}

// Secretive returns a [Child] with secrets in all that can hold some.
func Secretive(t testing.TB, kind string) mcppool.Server {
	t.Helper()
	srv := Child(t, kind)
	srv.Args = []string{"--token", secret("flag"), "--api-key=" + secret("equals"), "-H", "Authorization: Bearer " + secret("bearer")}
	srv.Env["TOKEN"] = secret("env")
	srv.Env["NEUTRAL"] = secret("neutral")
	srv.Env["DATABASE"] = "mysql://" + url.UserPassword(secret("user"), secret("password")).String() + "@db/x"
	return srv
}

// web serves until the test's end, and returns its URL. At /ok is a server whose
// tools "tell" and "refuse" answer with the headers of the request; /closed
// answers anything with status 401 and the whole request.
func web(t testing.TB) string {
	t.Helper()
	s := server.NewMCPServer(secret("header"), "1")
	s.AddTool(mcp.NewTool("tell"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fmt.Sprint(req.Header)), nil
	})
	s.AddTool(mcp.NewTool("refuse"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("refused %v", req.Header)
	})
	mux := http.NewServeMux()
	mux.Handle("/ok", server.NewStreamableHTTPServer(s))
	mux.HandleFunc("/closed", func(w http.ResponseWriter, r *http.Request) {
		all, err := httputil.DumpRequest(r, true)
		http.Error(w, fmt.Sprint(r.URL, "\n", string(all), err), http.StatusUnauthorized)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

// secretiveAt returns a server at a URL with secrets in all that can hold some.
func secretiveAt(t testing.TB, address string) mcppool.Server {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(secret("user"), secret("password"))
	u.RawQuery = url.Values{"key": {secret("query")}}.Encode()
	return mcppool.Server{URL: u.String(), Header: map[string]string{"X-Api-Key": secret("header"), "X-Auth": "Bearer " + secret("bearer")}}
}
