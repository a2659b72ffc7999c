package mcpconn

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// dialHTTP connects over SSE or streamable HTTP.
func dialHTTP(ctx context.Context, cfg *Config) (_ *Conn, err error) {
	c := &Conn{cfg: cfg, done: make(chan struct{})}
	quiet := slog.New(slog.DiscardHandler)
	web := &http.Client{Transport: cfg.Web.transport()}
	if isSSE(cfg.URL) {
		c.sender, err = transport.NewSSE(cfg.URL, transport.WithHeaders(cfg.Header),
			transport.WithHTTPClient(web), transport.WithSSELogger(quiet))
	} else {
		c.sender, err = transport.NewStreamableHTTP(cfg.URL, transport.WithHTTPHeaders(cfg.Header),
			transport.WithHTTPBasicClient(web), transport.WithHTTPLogger(quiet))
	}
	if err != nil {
		return nil, &StartError{Phase: "connect", Err: plain(err)}
	}
	opts := append(cfg.clientOptions(), client.WithDiscoverTimeout(cfg.silence(ctx)))
	if cfg.Era == Modern {
		opts = append(opts, client.WithDiscoverTimeout(-1))
	}
	c.mcp = client.NewClient(wrapHTTP(c.sender), opts...)
	// The stream of SSE lives as long as this ctx, which is the connection's own.
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, c.end)
	err = c.mcp.Start(c.life)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		c.mcp.OnNotification(func(n mcp.JSONRPCNotification) {
			if n.Method == mcp.MethodNotificationSubscriptionsAcknowledged {
				params, _ := json.Marshal(n.Params)
				c.streams.acknowledged(params)
			}
			if h := cfg.Handlers.Notification; h != nil {
				h(n)
			}
		})
		err = c.initialize(ctx, cfg.Era)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		_ = c.Close()
		return nil, &StartError{Phase: "connect", Err: plain(err)}
	}
	return c, nil
}

// Web is the HTTP connections that several Conns share, and nobody else. They are
// made for the first. Its zero value is ready.
type Web struct {
	once sync.Once
	t    *http.Transport
}

func (w *Web) transport() *http.Transport {
	w.once.Do(func() {
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			w.t = t.Clone()
		} else {
			w.t = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
		}
	})
	return w.t
}

// Close ends the connections. No Dial may be under way.
func (w *Web) Close() {
	if w.t != nil {
		w.t.CloseIdleConnections()
	}
}

// isSSE tells the older HTTP+SSE transport from streamable HTTP, by the path
// that servers of that transport serve by convention.
func isSSE(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/sse")
}

// addHeader adds the headers that modern connections over HTTP want with a
// request, which mcp-go's client adds to its own.
func (c *Conn) addHeader(req *transport.JSONRPCRequest) {
	if c.child != nil {
		return
	}
	params, err := json.Marshal(req.Params)
	if err != nil {
		panic("bug: " + err.Error())
	}
	req.Header = make(http.Header)
	for name, value := range maps.All(mcp.StandardHeaders(c.mcp.ProtocolVersion(), mcp.MCPMethod(req.Method), params)) {
		req.Header.Set(name, value)
	}
}
