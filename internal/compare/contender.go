package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// era is how a client is to begin a connection.
type era int

const (
	auto era = iota // as it does by default
	legacy
	modern
)

// target is a server to connect to.
type target struct {
	server string
	era    era
}

// child is the command line of the target.
func (t target) child() (command string, args []string) {
	exe, err := os.Executable()
	if err != nil {
		panic("bug: this program has no path: " + err.Error())
	}
	return exe, []string{"serve", t.server}
}

// session is one connection of a contender.
type session interface {
	// call calls a tool. It may be called from several goroutines at once,
	// though not every session then has several calls under way.
	call(ctx context.Context, tool string, args any) (reply, error)
	close() error
}

// reply is the one content block of a result, in the form that the contender
// gives it.
type reply struct {
	text string // of a text; of an image, its base64
	data []byte // of an image, where a contender decodes it
	line []byte // the whole message, where a contender doesn't look into it
}

// holds reports whether r is of a content of n bytes.
func (r reply) holds(n int) bool {
	switch {
	case r.line != nil:
		return len(r.line) > n
	case r.data != nil:
		return len(r.data) == n/4*3
	default:
		return len(r.text) == n
	}
}

var errBlocks = errors.New("the result isn't one block of text or image")

type dialer func(context.Context, target) (session, error)

const (
	pool         = "mcppool"
	poolShared   = "mcppool, shared and concurrent"
	poolOneShot  = "mcppool, no scope"
	conn         = "mcppool's connection alone"
	connInTurn   = "mcppool's connection alone, a call at a time"
	mcpGo        = "mcp-go"
	mcpGoOneShot = "mcp-go, process per call"
	goSDK        = "go-sdk"
	floor        = "floor"
)

var contenders = map[string]dialer{
	pool:         dialPool,
	poolShared:   dialPoolShared,
	poolOneShot:  dialPoolOneShot,
	conn:         dialConn,
	connInTurn:   dialConnInTurn,
	mcpGo:        dialMCPGo,
	mcpGoOneShot: dialOneShot(dialMCPGo),
	goSDK:        dialGoSDK,
	floor:        dialFloor,
}

func names(contenders []string) string { return strings.Join(contenders, "; ") }

// dialOneShot makes a contender connect for each call.
func dialOneShot(dial dialer) dialer {
	return func(_ context.Context, t target) (session, error) { return oneShot{dial, t}, nil }
}

type oneShot struct {
	dial dialer
	t    target
}

func (o oneShot) call(ctx context.Context, tool string, args any) (reply, error) {
	s, err := o.dial(ctx, o.t)
	if err != nil {
		return reply{}, err
	}
	r, err := s.call(ctx, tool, args)
	return r, errors.Join(err, s.close())
}

func (o oneShot) close() error { return nil }

// open connects within a bound.
func open(ctx context.Context, name string, t target) (session, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	s, err := contenders[name](ctx, t)
	if err != nil {
		return nil, fmt.Errorf("%s: connect: %w", name, err)
	}
	return s, nil
}

// sharing is several sessions, each of which gets the same share of the calls.
type sharing struct {
	many many
	all  []session
	next atomic.Uint64
}

func openMany(ctx context.Context, name string, t target, n int) (session, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	s := &sharing{many: dialMany(name)}
	for range n {
		one, err := s.many.dial(ctx, t)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: connect: %w", name, err), s.close())
		}
		s.all = append(s.all, one)
	}
	return s, nil
}

func (s *sharing) call(ctx context.Context, tool string, args any) (reply, error) {
	return s.all[s.next.Add(1)%uint64(len(s.all))].call(ctx, tool, args)
}

func (s *sharing) close() (err error) {
	for _, one := range s.all {
		err = errors.Join(err, one.close())
	}
	return errors.Join(err, s.many.close())
}
