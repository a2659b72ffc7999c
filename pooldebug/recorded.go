package pooldebug

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcppool/mcppool"
)

// addClosed adds the sessions that closed within the window, and those whose
// connect failed. One that the pool described, too, since it closed meanwhile or is
// about to be forgotten, is shown as the pool described it.
func (p *Page) addClosed(all []*candidate, now time.Time) []*candidate {
	gone := make(map[string]track)
	p.mu.Lock()
	for _, t := range p.closed {
		if t.ended >= now.Add(-p.opts.Window).UnixNano() {
			gone[t.id] = *t
		}
	}
	p.mu.Unlock()
	for _, c := range all {
		delete(gone, c.ID)
	}
	for _, t := range gone {
		all = append(all, &candidate{closed: time.Unix(0, t.ended), reason: t.reason, SessionInfo: mcppool.SessionInfo{
			ID: t.id, Server: t.server, Scope: t.scope, State: "closed", Spare: t.spare, OneShot: t.reason == string(mcppool.ReasonOneShot),
			Opened: time.Unix(0, t.begun), Calls: t.calls, LastError: t.lastErr,
		}})
	}
	return all
}

// addRecorded adds what the page wrote down itself.
func (p *Page) addRecorded(s *snapshot, servers map[string]*serverInfo, since uint64, now time.Time) {
	var events []event
	spans := make([][]span, len(s.Sessions))
	p.mu.Lock()
	counted, hists := p.series.window(now.UnixNano())
	for i := range s.Sessions {
		spans[i] = p.recordedLocked(&s.Sessions[i])
	}
	for label, state := range p.backoffs {
		if servers[label] == nil {
			servers[label] = &serverInfo{Server: clean(label)}
		}
		servers[label].Backoff = string(state)
	}
	if since < p.lastSeq {
		events = p.output.lines.appendTo(p.events.appendTo(p.calls.appendTo(nil)))
	}
	s.LeftOut = p.output.leftOut
	p.mu.Unlock()

	from := now.Add(-p.opts.Window).UnixNano()
	for i, all := range spans {
		s.Sessions[i].Spans = describeSpans(all, from)
	}
	s.Series = seriesInfo{Slot: ms(time.Duration(p.series.width)), Counts: make(map[string][]uint32, counts)}
	for k := range counted {
		s.Series.Counts[countNames[k]] = counted[k][:]
	}
	for k := range hists {
		s.Latency[latencyNames[k]] = describeLatency(&hists[k])
	}
	for _, srv := range servers {
		s.Servers = append(s.Servers, *srv)
	}
	slices.SortFunc(s.Servers, func(a, b serverInfo) int { return cmp.Compare(a.Server, b.Server) })
	s.Servers = s.Servers[:min(len(s.Servers), maxServers)]
	s.Events = describeEvents(events, since)
}

// recordedLocked adds what was written down of a session to its row, and returns what it
// was busy with. The caller must hold p.mu.
func (p *Page) recordedLocked(row *sessionInfo) []span {
	if row.State == "connecting" {
		row.Running = nsToMS(p.running[row.ID])
	}
	t := p.tracks[row.ID]
	if t == nil {
		return nil
	}
	if row.Closed == 0 && t.scope != row.Scope {
		t.scope = row.Scope
	}
	return t.spans.appendTo(nil)
}

// describeSpans describes the spans that end at from or later.
func describeSpans(all []span, from int64) []spanInfo {
	out := make([]spanInfo, 0, len(all))
	for _, sp := range all {
		if sp.end < from {
			continue
		}
		info := spanInfo{Begin: nsToMS(sp.begin), Took: ms(time.Duration(sp.end - sp.begin)), Kind: spanNames[sp.kind], N: sp.n}
		if sp.ran != 0 {
			info.Start = ms(time.Duration(sp.ran - sp.begin))
		}
		out = append(out, info)
	}
	return out
}

func describeEvents(all []event, since uint64) []eventInfo {
	slices.SortFunc(all, func(a, b event) int { return cmp.Compare(a.seq, b.seq) })
	out := make([]eventInfo, 0, len(all))
	for _, e := range all {
		if e.seq > since {
			out = append(out, eventInfo{
				Seq: e.seq, At: nsToMS(e.at), Kind: e.kind, Level: levelNames[e.level], Session: e.session,
				Server: clean(e.server), Tool: clean(e.tool), Text: clean(e.text), Took: ms(e.took),
			})
		}
	}
	return out
}

func describeLatency(h *histogram) latInfo {
	return latInfo{
		Count: h.count(), P50: ms(h.quantile(.5)), P90: ms(h.quantile(.9)), P99: ms(h.quantile(.99)), Max: ms(h.max),
		Buckets: h.buckets[:],
	}
}
