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

// Trace returns what the page has to be told by: the Trace of [mcppool.Options], or
// one of several with [mcppool.MergeTraces]. It adds a few hundred ns to a call.
func (p *Page) Trace() *mcppool.Trace {
	return &mcppool.Trace{
		WaitEnd:        p.waitEnd,
		ProcessStarted: p.processStarted,
		ConnectEnd:     p.connectEnd,
		CallEnd:        p.callEnd,
		SessionOpened:  p.sessionOpened,
		SessionClosed:  p.sessionClosed,
		BackoffChanged: p.backoffChanged,
		Junk:           p.junk,
		Stderr:         p.stderr,
	}
}

func (p *Page) waitEnd(_ context.Context, i mcppool.WaitEndInfo) {
	if i.For == mcppool.WaitConnect {
		return // the connect itself is measured
	}
	now := time.Now().UnixNano()
	e := event{at: now, kind: "gave up waiting", level: levelWarn, session: i.SessionID, server: i.Server, took: i.Took}
	if i.Err != nil {
		e.text = string(i.For) + ": " + cut(i.Err.Error(), maxText)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.series.at(now).hist[latencyQueue].add(i.Took)
	if i.Err != nil {
		p.tellLocked(&p.events, e)
	}
}

// processStarted splits a connect in the start of its process and the handshake.
// Of two processes the second counts: the first was only asked for its era.
func (p *Page) processStarted(_ context.Context, i mcppool.ProcessStartedInfo) {
	now := time.Now().UnixNano()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, again := p.running[i.SessionID]; again || len(p.running) < maxOpen {
		p.running[i.SessionID] = now
	}
}

func (p *Page) connectEnd(_ context.Context, i mcppool.ConnectEndInfo) {
	now := time.Now().UnixNano()
	s := span{begin: now - int64(i.Took), end: now, kind: spanConnect, n: 1}
	e := event{at: now, kind: "start failed", level: levelBad, session: i.SessionID, server: i.Server, took: i.Took}
	if i.Err != nil {
		s.kind = spanConnectFailed
		e.text = cut(i.Err.Error(), maxText)
		if errors.Is(i.Err, context.Canceled) {
			e.kind, e.level, e.text = "start given up", levelWarn, ""
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.series.at(now).hist[latencyConnect].add(i.Took)
	if ran := p.running[i.SessionID]; ran >= s.begin {
		s.ran = ran
	}
	delete(p.running, i.SessionID)
	t := p.tracks[i.SessionID]
	if i.Err != nil {
		p.tellLocked(&p.events, e)
		if t == nil {
			// It never opened, so that nobody will tell of its close.
			p.series.at(now).counts[countClosed]++
			t = &track{id: i.SessionID, server: i.Server, begun: s.begin, spare: i.Spare, lastErr: e.text}
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

func (p *Page) callEnd(_ context.Context, i mcppool.CallEndInfo) {
	now := time.Now().UnixNano()
	s := span{begin: now - int64(i.Took), end: now, kind: spanCall, n: 1}
	e := event{
		at: now, kind: string(i.Outcome), level: levelGood, session: i.SessionID, server: i.Server,
		tool: cut(i.Tool, maxName), took: i.Took,
	}
	if i.Outcome != mcppool.OutcomeOK {
		s.kind = spanFailed
		e.level = levelBad
		if i.Outcome == mcppool.OutcomeToolError || i.Outcome == mcppool.OutcomeCancelled || i.Outcome == mcppool.OutcomeNotSent {
			e.level = levelWarn
		}
		if i.Err != nil {
			e.text = cut(i.Err.Error(), maxText)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	sl := p.series.at(now)
	sl.counts[countCalls]++
	sl.hist[latencyCall].add(i.Took)
	if s.kind == spanFailed {
		sl.counts[countFailed]++
	}
	if t := p.tracks[i.SessionID]; t != nil {
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

func (p *Page) sessionOpened(_ context.Context, i mcppool.SessionOpenedInfo) {
	now := time.Now().UnixNano()
	e := event{at: now, kind: "opened", session: i.SessionID, server: i.Server}
	if i.Spare {
		e.text = "spare"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.series.at(now).counts[countOpened]++
	p.tellLocked(&p.events, e)
	if p.open >= maxOpen {
		return
	}
	t := &track{id: i.SessionID, server: i.Server, begun: now, spare: i.Spare, spans: ring[span]{max: maxSpans}}
	p.tracks[t.id] = t
	p.open++
}

func (p *Page) sessionClosed(_ context.Context, i mcppool.SessionClosedInfo) {
	now := time.Now().UnixNano()
	e := event{at: now, kind: "closed", session: i.SessionID, server: i.Server, text: string(i.Reason), took: i.Lived}
	switch i.Reason {
	case mcppool.ReasonCrashed, mcppool.ReasonTimeout, mcppool.ReasonWedged, mcppool.ReasonLeaked, mcppool.ReasonPanicked:
		e.level = levelWarn
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.series.at(now).counts[countClosed]++
	p.tellLocked(&p.events, e)
	if t := p.tracks[i.SessionID]; t != nil && t.ended == 0 {
		p.open--
		p.closeLocked(t, now, string(i.Reason))
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

func (p *Page) backoffChanged(_ context.Context, i mcppool.BackoffChangedInfo) {
	now := time.Now().UnixNano()
	e := event{at: now, kind: "backoff " + string(i.State), level: levelWarn, server: i.Server, took: i.Pause}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case i.State == mcppool.BackoffOver:
		e.level = levelGood
		delete(p.backoffs, i.Server)
	case len(p.backoffs) < maxServers || p.backoffs[i.Server] != "":
		p.backoffs[i.Server] = i.State
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
