package mcppool

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/toolresult"
)

// httpClient is the default client of a server at a URL: mcp-go's own.
type httpClient struct {
	mcp    *client.Client
	redact *redactor
	done   chan struct{} // closed by Close
	end    context.CancelFunc
}

// dialHTTP connects to the server of s, over SSE or streamable HTTP.
func (p *Pool) dialHTTP(ctx context.Context, s *session) (_ *httpClient, err error) {
	c := &httpClient{redact: newRedactor(&s.srv), done: make(chan struct{})}
	quiet := slog.New(slog.DiscardHandler)
	web := &http.Client{Transport: p.web}
	var t transport.Interface
	if s.srv.isSSE() {
		t, err = transport.NewSSE(s.srv.URL, transport.WithHeaders(s.srv.Header),
			transport.WithHTTPClient(web), transport.WithSSELogger(quiet))
	} else {
		t, err = transport.NewStreamableHTTP(s.srv.URL, transport.WithHTTPHeaders(s.srv.Header),
			transport.WithHTTPBasicClient(web), transport.WithHTTPLogger(quiet))
	}
	if err != nil {
		return nil, &StartError{Phase: "connect", Err: c.error(err)}
	}
	opts := append(p.clientOptions(s), client.WithMaxInputRoundTrips(1), client.WithDiscoverTimeout(s.probeTime(ctx)))
	switch {
	case s.srv.Protocol == ProtocolLegacy:
		opts = append(opts, client.WithProtocolVersion(mcp.LATEST_LEGACY_PROTOCOL_VERSION))
	case s.srv.Protocol == ProtocolModern:
		opts = append(opts, client.WithDiscoverTimeout(-1))
	}
	c.mcp = client.NewClient(wrapHTTP(t), opts...)
	// The stream of SSE lives as long as this ctx, which is the client's own.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	c.end = end
	stop := context.AfterFunc(ctx, end)
	err = c.mcp.Start(life)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		c.mcp.OnNotification(func(n mcp.JSONRPCNotification) {
			if h := p.opts.Handlers.Notification; h != nil {
				h(s.origin(), n)
			}
		})
		req := mcp.InitializeRequest{}
		req.Params.ClientInfo = p.opts.clientInfo()
		_, err = rpc(ctx, func(ctx context.Context) (*mcp.InitializeResult, error) {
			return c.mcp.Initialize(ctx, req)
		})
	}
	if err == nil && s.srv.Protocol == ProtocolModern && !mcp.IsModernProtocol(c.mcp.ProtocolVersion()) {
		err = errors.New("server speaks no modern revision of the protocol")
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		_ = c.Close()
		return nil, &StartError{Phase: "connect", Err: c.error(err)}
	}
	return c, nil
}

func (c *httpClient) CallTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	req.Params.Arguments = req.Params.RawArguments
	raw, err := rawResult(ctx, func(ctx context.Context) error {
		_, err := c.mcp.CallTool(ctx, req)
		return err
	})
	if err != nil {
		return nil, c.error(err)
	}
	return toolresult.Decode(raw, unknownContent)
}

func (c *httpClient) ListTools(ctx context.Context, req mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	res, err := rpc(ctx, func(ctx context.Context) (*mcp.ListToolsResult, error) {
		return c.mcp.ListToolsByPage(ctx, req)
	})
	return res, c.error(err)
}

// error takes the URL, which net/http quotes, out of an error, and what is known
// to be secret.
func (c *httpClient) error(err error) error {
	var (
		web *url.Error
		rpc *RPCError
	)
	switch {
	case errors.As(err, &rpc):
		rpc.Message = c.redact.text(rpc.Message)
		return rpc
	case errors.As(err, &web):
		err = web.Err
	}
	return c.redact.error(err)
}

func (c *httpClient) Done() <-chan struct{} { return c.done }
func (c *httpClient) Err() error            { return nil }

func (c *httpClient) Close() error {
	err := c.mcp.Close()
	c.end()
	close(c.done)
	return c.redact.error(err)
}

// newWebTransport gives a pool HTTP connections of its own, which end with it.
func newWebTransport() *http.Transport {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		return t.Clone()
	}
	return &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
}
