package pooldebug

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mcppool/mcppool"
)

// What a page remembers at most.
const (
	maxEvents = 256  // of calls, and as many of the other ones; lines of output have their own
	maxOpen   = 1024 // open sessions that have a timeline
	maxClosed = 128  // closed sessions
	maxSpans  = 160  // of a timeline
	maxText   = 512  // bytes of a text
	maxName   = 128  // bytes of a tool's name
	// A span that begins within this part of a window after another is drawn as
	// one with it.
	resolution = 300
)

type spanKind uint8

const (
	spanCall    spanKind = iota
	spanFailed           // a call without a good result
	spanConnect          // of two, the spans of calls alone are joined
	spanConnectFailed
)

var spanNames = [...]string{"call", "failed", "connect", "connect failed"}

// span is a part of a timeline.
type span struct {
	begin, end int64 // ns since 1970
	ran        int64 // of a connect: since when its process ran; 0 when it isn't known
	n          uint32
	kind       spanKind
}

// track is the timeline of a session.
type track struct {
	id, server string
	scope      string // as the pool shows it; empty until somebody looked
	begun      int64
	ended      int64 // 0 while it is open
	spare      bool
	reason     string
	lastErr    string
	calls      uint64
	spans      ring[span]
}

type event struct {
	seq     uint64
	at      int64
	kind    string
	level   level
	session string
	server  string
	tool    string
	text    string
	took    time.Duration
}

type level uint8

const (
	levelInfo level = iota
	levelGood
	levelWarn
	levelBad
)

var levelNames = [...]string{"info", "good", "warn", "bad"}

// Trace gives what the page has to be told by: the Trace of [mcppool.Options], or
// one of several with [mcppool.MergeTraces]. It adds a few hundred ns to a call.
func (p *Page) Trace() *mcppool.Trace {
	return &mcppool.Trace{
		WaitEnd:        p.waitEnd,
		ProcessStarted: p.processStarted,
		ConnectEnd:     p.connectEnd,
		CallEnd:        p.callEnd,
		SessionOpened:  p.sessionOpened,
		SessionClosed:  p.sessionClosed,
		BreakerChanged: p.breakerChanged,
		Junk:           p.junk,
		Stderr:         p.stderr,
	}
}

func (p *Page) waitEnd(_ context.Context, from mcppool.Origin, what mcppool.WaitFor, took time.Duration, err error) {
	if what == mcppool.WaitConnect {
		return // the connect itself is measured
	}
	now := time.Now().UnixNano()
	e := event{at: now, kind: "gave up waiting", level: levelWarn, session: from.SessionID, server: from.Server, took: took}
	if err != nil {
		e.text = string(what) + ": " + cut(err.Error(), maxText)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.series.at(now).hist[latencyQueue].add(took)
	if err != nil {
		p.tellLocked(&p.events, e)
	}
}

// processStarted splits a connect in the start of its process and the handshake.
// Of two processes the second counts: the first was only asked for its era.
func (p *Page) processStarted(_ context.Context, from mcppool.Origin, _ int) {
	now := time.Now().UnixNano()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, again := p.running[from.SessionID]; again || len(p.running) < maxOpen {
		p.running[from.SessionID] = now
	}
}

func (p *Page) connectEnd(_ context.Context, from mcppool.Origin, done mcppool.ConnectDone) {
	now := time.Now().UnixNano()
	s := span{begin: now - int64(done.Took), end: now, kind: spanConnect, n: 1}
	e := event{at: now, kind: "start failed", level: levelBad, session: from.SessionID, server: from.Server, took: done.Took}
	if done.Err != nil {
		s.kind = spanConnectFailed
		e.text = cut(done.Err.Error(), maxText)
		if errors.Is(done.Err, context.Canceled) {
			e.kind, e.level, e.text = "start given up", levelWarn, ""
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.series.at(now).hist[latencyConnect].add(done.Took)
	if ran := p.running[from.SessionID]; ran >= s.begin {
		s.ran = ran
	}
	delete(p.running, from.SessionID)
	t := p.tracks[from.SessionID]
	if done.Err != nil {
		p.tellLocked(&p.events, e)
		if t == nil {
			// It never opened, so that nobody will tell of its close.
			p.series.at(now).counts[countClosed]++
			t = &track{id: from.SessionID, server: from.Server, begun: s.begin, spare: done.Spare, lastErr: e.text}
			t.spans.max = maxSpans
			p.tracks[t.id] = t
			p.closeLocked(t, now, e.kind)
		}
	}
	if t != nil {
		t.begun = min(t.begun, s.begin)
		t.spans.add(s)
	}
}

func (p *Page) callEnd(_ context.Context, from mcppool.Origin, tool string, done mcppool.CallDone) {
	now := time.Now().UnixNano()
	s := span{begin: now - int64(done.Took), end: now, kind: spanCall, n: 1}
	e := event{
		at: now, kind: string(done.Outcome), level: levelGood, session: from.SessionID, server: from.Server,
		tool: cut(tool, maxName), took: done.Took,
	}
	if done.Outcome != mcppool.OutcomeOK {
		s.kind = spanFailed
		e.level = levelBad
		if done.Outcome == mcppool.OutcomeToolError || done.Outcome == mcppool.OutcomeCancelled || done.Outcome == mcppool.OutcomeNotSent {
			e.level = levelWarn
		}
		if done.Err != nil {
			e.text = cut(done.Err.Error(), maxText)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	sl := p.series.at(now)
	sl.counts[countCalls]++
	sl.hist[latencyCall].add(done.Took)
	if s.kind == spanFailed {
		sl.counts[countFailed]++
	}
	if t := p.tracks[from.SessionID]; t != nil {
		t.calls++
		if e.text != "" {
			t.lastErr = e.text
		}
		t.add(s, int64(p.opts.Window)/resolution)
	}
	p.tellLocked(&p.calls, e)
}

// add adds the span of a call. One that begins less than gap after the last is
// joined to it, when they ended alike, or else when both are too short to be told
// apart; so a timeline reaches far back however many calls there are.
func (t *track) add(s span, gap int64) {
	last := t.spans.last()
	if last == nil || last.kind >= spanConnect || s.begin-last.end >= gap ||
		s.kind != last.kind && max(s.end, last.end)-min(s.begin, last.begin) >= gap {
		t.spans.add(s)
		return
	}
	last.begin, last.end = min(last.begin, s.begin), max(last.end, s.end)
	last.n++
	last.kind = max(last.kind, s.kind)
}

func (p *Page) sessionOpened(from mcppool.Origin, spare bool) {
	now := time.Now().UnixNano()
	e := event{at: now, kind: "opened", session: from.SessionID, server: from.Server}
	if spare {
		e.text = "spare"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.series.at(now).counts[countOpened]++
	p.tellLocked(&p.events, e)
	if p.open >= maxOpen {
		return
	}
	t := &track{id: from.SessionID, server: from.Server, begun: now, spare: spare, spans: ring[span]{max: maxSpans}}
	p.tracks[t.id] = t
	p.open++
}

func (p *Page) sessionClosed(from mcppool.Origin, why mcppool.CloseReason, lived time.Duration) {
	now := time.Now().UnixNano()
	e := event{at: now, kind: "closed", session: from.SessionID, server: from.Server, text: string(why), took: lived}
	switch why {
	case mcppool.ReasonCrashed, mcppool.ReasonTimeout, mcppool.ReasonWedged, mcppool.ReasonLeaked, mcppool.ReasonPanicked:
		e.level = levelWarn
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.series.at(now).counts[countClosed]++
	p.tellLocked(&p.events, e)
	if t := p.tracks[from.SessionID]; t != nil && t.ended == 0 {
		p.open--
		p.closeLocked(t, now, string(why))
	}
}

// closeLocked moves a track to the closed ones. The caller must hold p.mu.
func (p *Page) closeLocked(t *track, now int64, reason string) {
	t.ended, t.reason = now, reason
	p.closed = append(p.closed, t)
	for len(p.closed) > maxClosed || p.closed[0].ended < now-int64(p.opts.Window) {
		delete(p.tracks, p.closed[0].id)
		p.closed[0] = nil
		p.closed = p.closed[1:]
	}
}

func (p *Page) breakerChanged(server string, state mcppool.BreakerState, pause time.Duration) {
	now := time.Now().UnixNano()
	e := event{at: now, kind: "breaker " + string(state), level: levelWarn, server: server, took: pause}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case state == mcppool.BreakerClosed:
		e.level = levelGood
		delete(p.breakers, server)
	case len(p.breakers) < maxServers || p.breakers[server] != "":
		p.breakers[server] = state
	}
	p.tellLocked(&p.events, e)
}

// tellLocked numbers an event and keeps it. The caller must hold p.mu.
func (p *Page) tellLocked(to *ring[event], e event) {
	p.lastSeq++
	e.seq = p.lastSeq
	to.add(e)
}

// cut keeps a text short, and what it was cut from out of memory.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.Clone(s[:n]) + "…"
}
