package mcpconn

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// wire stands between mcp-go's client and a transport and keeps answers as they
// came: the client drops the code and data of most JSON-RPC errors, and refuses
// results with blocks of a type that it doesn't know.
type wire struct {
	transport.Interface
	question *question // nil when the server's era is known
}

// The client asks a transport what it can by type assertions, so that a wrapped
// one must be able to do the same.
type (
	requests interface {
		SetRequestHandler(transport.RequestHandler)
	}
	versions  interface{ SetProtocolVersion(string) }
	stdioWire struct {
		*wire
		requests
	}
	sseWire struct {
		*wire
		versions
	}
	streamableWire struct {
		*wire
		requests
		versions
	}
)

func wrapHTTP(t transport.Interface) transport.Interface {
	w := &wire{Interface: t}
	if b, ok := t.(*transport.StreamableHTTP); ok {
		return streamableWire{w, b, b}
	}
	return sseWire{w, t.(versions)}
}

type captureKey struct{}

// capture is where wire puts the answer of the request that is made with it in
// its ctx.
type capture struct{ answer *transport.JSONRPCResponse }

func (w *wire) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	var answer *transport.JSONRPCResponse
	var err error
	if w.question != nil {
		answer, err = w.question.send(ctx, req)
	} else {
		answer, err = w.Interface.SendRequest(ctx, req)
	}
	c, ok := ctx.Value(captureKey{}).(*capture)
	if err != nil || !ok {
		return answer, err
	}
	c.answer = answer
	if answer.Error == nil && req.Method == string(mcp.MethodToolsCall) {
		stub := *answer
		stub.Result = json.RawMessage(`{"content":[]}`) // rawResult has the real one
		return &stub, nil
	}
	return answer, nil
}

// rpc runs a request of the client and gives a JSON-RPC error whole.
func rpc[T any](ctx context.Context, request func(context.Context) (T, error)) (T, error) {
	var c capture
	res, err := request(context.WithValue(ctx, captureKey{}, &c))
	if err == nil {
		return res, nil
	}
	var zero T
	if c.answer != nil && c.answer.Error != nil {
		return zero, rpcError(c.answer.Error)
	}
	return zero, plain(err)
}

// rawResult runs a tools/call of the client and gives its result undecoded.
func rawResult(ctx context.Context, request func(context.Context) error) (json.RawMessage, error) {
	var c capture
	err := request(context.WithValue(ctx, captureKey{}, &c))
	switch {
	case c.answer == nil:
		return nil, plain(err)
	case c.answer.Error != nil:
		return nil, rpcError(c.answer.Error)
	default:
		return c.answer.Result, nil
	}
}
