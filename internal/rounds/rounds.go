package rounds

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/encode"
	"github.com/mcppool/mcppool/internal/rpc"
)

// maxRounds bounds how often a server may ask within one call.
const maxRounds = 10

// Host is the connection that a call is made on.
type Host interface {
	// Go runs f, and after it in every case after, on a goroutine that the close of
	// the connection waits for. It reports false and runs nothing when that is closed.
	Go(f, after func()) bool
	// Ending returns a ctx that ends with the connection; Err is why it did.
	Ending() context.Context
	Err() error
}

// Round makes one request of a call. More is members of its params.
type Round func(more json.RawMessage) (*mcp.CallToolResult, error)

// Continue goes on with a call whose result asks for input, as long as there are
// handlers for all that it asks. A result that asks for something else is the
// caller's.
//
// The server has seen the call by then, so that no error is a [*rpc.NotSentError]. A
// handler's ctx ends with the call's and with the connection; Continue returns then,
// whether or not the handler does.
func Continue(ctx context.Context, host Host, h *rpc.Handlers, res *mcp.CallToolResult, again Round) (*mcp.CallToolResult, error) {
	for range maxRounds {
		if !res.NeedsInput() || len(res.InputRequests) == 0 || !canAnswerAll(h, res.InputRequests) {
			return res, nil
		}
		answers, err := ask(ctx, host, h, res.InputRequests)
		if err != nil {
			return nil, err
		}
		more, err := members(answers, res.RequestState)
		if err != nil {
			return nil, err
		}
		if res, err = again(more); err != nil {
			return nil, sent(err)
		}
	}
	return res, nil
}

func canAnswerAll(h *rpc.Handlers, requests mcp.InputRequests) bool {
	for _, r := range requests {
		if !CanAnswer(h, r) {
			return false
		}
	}
	return true
}

// sent is the error of a call that the server has seen: only its latest request may
// not have gone out.
func sent(err error) error {
	var not *rpc.NotSentError
	for errors.As(err, &not) {
		err = not.Err
	}
	return err
}

// ask runs the handlers, one after the other in the order of the ids.
func ask(ctx context.Context, host Host, h *rpc.Handlers, requests mcp.InputRequests) (mcp.InputResponses, error) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(host.Ending(), cancel)()

	var (
		answers mcp.InputResponses
		failure error = &rpc.HandlerError{Reason: "its handler panicked"}
		done          = make(chan struct{})
	)
	if !host.Go(func() { answers, failure = askAll(within, h, requests) }, func() { close(done) }) {
		return nil, host.Err()
	}
	select {
	case <-done:
		if failure == nil {
			return answers, nil
		}
	case <-within.Done():
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case host.Ending().Err() != nil:
		return nil, host.Err()
	default:
		return nil, failure
	}
}

func askAll(ctx context.Context, h *rpc.Handlers, requests mcp.InputRequests) (mcp.InputResponses, error) {
	answers := make(mcp.InputResponses, len(requests))
	for _, id := range slices.Sorted(maps.Keys(requests)) {
		r := requests[id]
		a, err := answer(ctx, h, r)
		if err != nil {
			return nil, &rpc.HandlerError{Method: string(r.Method), Reason: err.Error()}
		}
		answers[id] = a
	}
	return answers, nil
}

// members are those that the params of the next round have besides those of the first.
func members(answers mcp.InputResponses, state string) (json.RawMessage, error) {
	text, err := encode.JSON(answers)
	if err != nil {
		return nil, &rpc.HandlerError{Reason: "the answer of its handler can't be encoded: " + encode.Reason(err)}
	}
	more := append(json.RawMessage(`"inputResponses":`), text...)
	if state == "" {
		return more, nil
	}
	text, err = encode.JSON(state)
	if err != nil {
		panic("bug: a string can't be encoded: " + err.Error())
	}
	return append(append(more, `,"requestState":`...), text...), nil
}
