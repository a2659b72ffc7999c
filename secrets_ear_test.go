package mcppool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/mcppool/mcppool"
)

// ear hears everything that the pool says to others than the caller of a tool.
type ear struct {
	mu    sync.Mutex
	heard map[string]*strings.Builder // by where
}

func (e *ear) hear(where, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.heard == nil {
		e.heard = make(map[string]*strings.Builder)
	}
	if e.heard[where] == nil {
		e.heard[where] = new(strings.Builder)
	}
	e.heard[where].WriteString(text + "\n")
}

// error hears an error and all that it wraps, in the ways in which they are
// printed.
func (e *ear) error(where string, err error) {
	if err == nil {
		return
	}
	e.hear(where, fmt.Sprintf("%v\n%+v\n%q\n%#v", err, err, err, err))
	asJSON, _ := json.Marshal(err) // the fields of the typed ones
	e.hear(where, string(asJSON))
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		e.error(where, err.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range err.Unwrap() {
			e.error(where, err)
		}
	}
}

func (e *ear) sessions(p *mcppool.Pool) {
	for s := range p.Sessions() {
		asJSON, err := json.Marshal(s)
		if err != nil {
			e.hear("Sessions", err.Error())
		}
		e.hear("Sessions", fmt.Sprintf("%+v\n%s", s, asJSON))
	}
	e.hear("Stats", fmt.Sprintf("%+v", p.Stats()))
}

// mentions are the lines of what was heard that contain a word.
func (e *ear) mentions(word string) (lines []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for where, text := range e.heard {
		for line := range strings.Lines(text.String()) {
			if i := strings.Index(line, word); i >= 0 {
				lines = append(lines, where+": …"+line[max(0, i-60):min(len(line), i+60)]+"…")
			}
		}
	}
	return lines
}

// Write is for what is logged or printed.
func (e *ear) Write(b []byte) (int, error) {
	e.hear("log", string(b))
	return len(b), nil
}

// both is a handler that gives records to two.
type both struct{ a, b slog.Handler }

func (h both) Enabled(context.Context, slog.Level) bool { return true }
func (h both) Handle(ctx context.Context, r slog.Record) error {
	return errors.Join(h.a.Handle(ctx, r), h.b.Handle(ctx, r))
}
func (h both) WithAttrs(attrs []slog.Attr) slog.Handler {
	return both{h.a.WithAttrs(attrs), h.b.WithAttrs(attrs)}
}
func (h both) WithGroup(name string) slog.Handler {
	return both{h.a.WithGroup(name), h.b.WithGroup(name)}
}

func (e *ear) logger() *slog.Logger {
	opts := &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true}
	return slog.New(both{slog.NewJSONHandler(e, opts), slog.NewTextHandler(e, opts)})
}

func (e *ear) trace() *mcppool.Trace {
	return &mcppool.Trace{
		WaitBegin:       heard[mcppool.WaitBeginInfo](e, "WaitBegin"),
		WaitEnd:         heard[mcppool.WaitEndInfo](e, "WaitEnd"),
		ConnectBegin:    heard[mcppool.ConnectBeginInfo](e, "ConnectBegin"),
		ProcessStarted:  heard[mcppool.ProcessStartedInfo](e, "ProcessStarted"),
		ConnectEnd:      heard[mcppool.ConnectEndInfo](e, "ConnectEnd"),
		CallBegin:       heard[mcppool.CallBeginInfo](e, "CallBegin"),
		CallEnd:         heard[mcppool.CallEndInfo](e, "CallEnd"),
		SessionOpened:   heard[mcppool.SessionOpenedInfo](e, "SessionOpened"),
		SessionClosed:   heard[mcppool.SessionClosedInfo](e, "SessionClosed"),
		SessionBorrowed: heard[mcppool.SessionBorrowedInfo](e, "SessionBorrowed"),
		SessionReleased: heard[mcppool.SessionReleasedInfo](e, "SessionReleased"),
		SessionReplaced: heard[mcppool.SessionReplacedInfo](e, "SessionReplaced"),
		BackoffChanged:  heard[mcppool.BackoffChangedInfo](e, "BackoffChanged"),
		Junk:            heard[mcppool.JunkInfo](e, "Junk"),
		Stderr:          heard[mcppool.StderrInfo](e, "Stderr"),
		Panicked:        heard[mcppool.PanickedInfo](e, "Panicked"),
	}
}

// heard is a hook whose every argument is heard.
func heard[T any](e *ear, where string) func(context.Context, T) {
	return func(_ context.Context, info T) {
		e.hear("Trace."+where, fmt.Sprintf("%+v", info))
		switch i := any(info).(type) {
		case mcppool.WaitEndInfo:
			e.error("Trace."+where, i.Err)
		case mcppool.CallEndInfo:
			e.error("Trace."+where, i.Err)
		case mcppool.SessionClosedInfo:
			e.error("Trace."+where, i.Err)
		case mcppool.ConnectEndInfo:
			e.error("Trace."+where, i.Err)
			shown, _ := json.Marshal(i.Info)
			e.hear("Trace."+where, string(shown))
		}
	}
}
