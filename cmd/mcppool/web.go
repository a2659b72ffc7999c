package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mcppool/mcppool/pooldebug"
	"github.com/mcppool/mcppool/toolbox"
)

// handlers are what is served.
func handlers(g *gateway, page *pooldebug.Page, registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", g)
	mux.Handle("/debug/mcppool", page)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		set, err := g.box.Tools(r.Context())
		if err != nil {
			http.Error(w, "the configuration can't be read", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n" + failures(set)))
	})
	return mux
}

// streams has the streams that clients keep open end with listening, so that a shutdown
// waits for calls alone.
func streams(listening context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == "subscriptions/listen" {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(listening, cancel)()
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}

// failures are the servers that don't list their tools, a line each. They make nothing
// unhealthy: the others serve.
func failures(set *toolbox.ToolSet) string {
	var b strings.Builder
	for _, f := range set.Failed {
		b.WriteString("without tools: " + f.Server + "\n")
	}
	return b.String()
}

// guard refuses who may not ask: with a token whoever doesn't show it, without one whoever
// comes by a name that isn't this machine's (a foreign site can let its name point here),
// and in both cases the pages of other sites.
func (o *serveOptions) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !ownOrigin(r):
			http.Error(w, "pages of other sites may not ask", http.StatusForbidden)
		case o.token == "" && !isLoopback(hostOf(r.Host)):
			http.Error(w, "this isn't served under that host name", http.StatusForbidden)
		case o.token != "" && r.URL.Path != "/healthz" && !shows(r, o.token):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "no token, or a wrong one", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// ownOrigin reports whether a request comes from no page, or from one of this host.
func ownOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// shows compares in a time that doesn't tell how much of the token is right.
func shows(r *http.Request, token string) bool {
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	a, b := sha256.Sum256([]byte(shown)), sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// isLoopback reports whether only this machine reaches the host.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
