package mcppool

import (
	"context"
	"slices"
)

// Spares are connected sessions that no scope has touched. One is handed to one
// scope, or one one-shot call, once. They hide the cold start of a server.

// Prewarm connects spares of srv, so that there are n, and waits for them. Each
// is handed to the next call that would have to start srv. They are given up
// after the server's idle time, and before anything else when a limit is tight.
// It fails with the first connect's error, with [ErrServerClosed] or [ErrClosed]
// where those ended a connect, with a [*BusyError] where a limit leaves no room,
// and with ctx's error; what is connecting then goes on.
func (p *Pool) Prewarm(ctx context.Context, srv Server, n int) error {
	if srv.IsHTTP() {
		return &ConfigError{Field: "Server.URL", Reason: "is set: a server that is reached over HTTP has no spares"}
	}
	started, err := p.startSpares(ctx, &srv, n)
	for _, s := range started {
		select {
		case <-s.ready:
			if err == nil {
				err = s.connectErr
			}
		case <-s.killed:
			return wrap("prewarm", &srv, phaseQueue, s.cause)
		case <-ctx.Done():
			return wrap("prewarm", &srv, phaseQueue, ctx.Err())
		}
	}
	if err != nil {
		return wrap("prewarm", &srv, phaseQueue, err)
	}
	return nil
}

func (p *Pool) startSpares(ctx context.Context, srv *Server, n int) (started []*session, err error) {
	k := key{server: digestOf(srv)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	have := 0
	if g := p.servers[k.server]; g != nil {
		have = len(g.spares) + g.starting
		for s := range g.members {
			if s.spare && s.state == stateConnecting {
				started = append(started, s)
			}
		}
	}
	for ; have < n; have++ {
		s, err := p.newSessionLocked(ctx, k, srv, true)
		if err != nil {
			return started, err
		}
		started = append(started, s)
	}
	return started, nil
}

// spareReadyLocked files a spare that has come up. The caller must hold p.mu.
func (p *Pool) spareReadyLocked(s *session) {
	s.group.starting--
	s.group.spares = append(s.group.spares, s)
	s.idle.Used = p.now()
	p.spares.Join(&s.idle, p.opts.idleTimeoutOf(&s.srv))
	p.spares.File(&s.idle)
	if t := s.idle.Timeout(); t > 0 {
		p.expiresLocked(s.idle.Used + t)
	}
	// A call may wait for a place to start the same server: this one is there.
	for m := range s.group.members {
		if m.state == stateQueued && m.waitsFor != limitScope {
			p.killLocked(m, errStale, CloseAbandoned)
			return
		}
	}
}

// takeSpareLocked hands a spare to a call, borrowed, or gives nil. The caller
// must hold p.mu.
func (p *Pool) takeSpareLocked(k key, srv *Server) *session {
	g := p.servers[k.server]
	for g != nil && len(g.spares) > 0 {
		s := g.spares[len(g.spares)-1]
		if s.isLost() {
			p.unlinkLocked(s, CloseCrashed)
			continue
		}
		if sc := p.scopes[k.scope]; sc != nil && p.limits.MaxPerScope > 0 && sc.tally.processes >= p.limits.MaxPerScope {
			return nil // it waits, as it would for a new one
		}
		g.spares = g.spares[:len(g.spares)-1]
		p.spares.Leave(&s.idle)
		s.spare, s.idle.Used = false, 0
		s.inFlight = 1
		s.setLifetime()
		p.assignLocked(s, k, srv)
		if s.linked {
			p.trimLocked(s)
		}
		return s
	}
	return nil
}

// dropSpareLocked takes a spare out of what may be handed out. The caller must
// hold p.mu.
func (p *Pool) dropSpareLocked(s *session) {
	s.spare = false
	i := slices.Index(s.group.spares, s)
	if i < 0 {
		s.group.starting-- // it is connecting
		return
	}
	s.group.spares = slices.Delete(s.group.spares, i, i+1)
	p.unfileLocked(s, &p.spares)
}

// refillLocked begins the connects of missing spares of a server that starts, if
// nobody waits for a place and there is room. The caller must hold p.mu.
func (p *Pool) refillLocked(d digest, srv *Server) {
	for !p.closed && p.queue.Len() == 0 {
		// Looked up each time: a server without sessions is forgotten.
		if g := p.servers[d]; g != nil && len(g.spares)+g.starting >= srv.Spares {
			return
		}
		if _, err := p.newSessionLocked(context.Background(), key{server: d}, srv, true); err != nil {
			return
		}
	}
}
