package mcppool

import (
	"context"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/redact"
)

// connectContext is the ctx of a connect that a caller begins: it has the
// caller's values but not its end, since others may wait for the same connect.
// It ends with the connect, when nobody waits any longer, or when the session is
// killed.
func (p *Pool) connectContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if d := p.opts.connectTimeout(); d > 0 {
		return context.WithTimeout(ctx, d)
	}
	return context.WithCancel(ctx)
}

// connect brings s up, or ends it. It is the goroutine of a session that is
// connecting: whatever Dial brings up is published here or closed here.
func (p *Pool) connect(ctx context.Context, s *session) {
	defer p.wg.Done()
	p.tellBreaker()
	p.mu.Lock()
	from, spare, oneShot, begun := s.borrowedOrigin(), s.spare, s.oneShot, p.now()
	p.mu.Unlock()
	if p.trace.ConnectBegin != nil {
		p.trace.ConnectBegin(ctx, from)
	}
	client, err := p.dial(ctx, s)
	var lost <-chan struct{}
	if err == nil {
		lost = client.Done()
		if c, ok := client.(Informer); ok {
			s.info = c.Info()
		}
	}

	p.mu.Lock()
	s.values = nil // it was for this alone
	if s.process {
		p.starting--
	}
	wanted := s.state == stateConnecting
	switch {
	case wanted && err == nil:
		s.client, s.lost = client, lost
		p.moveLocked(s, stateLive)
		p.opened++
		p.startedLocked(s, true, nil)
		switch {
		case s.spare:
			p.spareReadyLocked(s)
		case s.linked:
			p.trimLocked(s)
		}
		p.dropLostLocked(s) // lostSession may have come too early to do it
	case wanted:
		s.connectErr = err
		p.moveLocked(s, stateClosing)
		p.unlinkLocked(s, CloseStartFailed)
		p.startedLocked(s, false, err)
		p.failures++
	default:
		// Killed, or given up by the last that waited. When that ties with the
		// end of the connect, the close wins: what came up is ended here.
		s.connectErr = s.cause
		p.startedLocked(s, false, nil)
		if err == nil {
			s.client = client
			p.opened++
		}
	}
	p.placeFreeLocked(s.group, s.scope) // MaxStarting
	p.mu.Unlock()
	if err == nil && p.trace.SessionOpened != nil {
		p.trace.SessionOpened(from, spare)
	}
	if p.trace.ConnectEnd != nil {
		done := ConnectDone{Took: p.now() - begun, Spare: spare, Info: s.infoToShow(), Err: err}
		if !wanted {
			done.Err = context.Canceled
		}
		p.trace.ConnectEnd(ctx, from, done)
	}
	close(s.ready)
	s.cancelConnect()
	p.tellBreaker()
	if wanted && err == nil {
		p.logOpened(s, oneShot)
		return
	}
	p.logStartFailed(s, err)
	p.closeSession(s)
}

// infoToShow is what the server said of itself, without secrets; nil when it said
// nothing. It is made once somebody looks, which must not be before the connect has
// ended.
func (s *session) infoToShow() *mcp.InitializeResult {
	s.showInfo.Do(func() {
		if s.info != nil {
			s.shownInfo = redact.Value(s.group.redact, s.info)
		}
	})
	return s.shownInfo
}

// lostSession drops a session whose connection was lost by itself, rather than
// at the next call that finds it. One that is still connecting is left to its
// connect, and one that is unlinked to its last borrower.
func (p *Pool) lostSession(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLostLocked(s)
}

// dropLostLocked takes s out of where calls find it if it is lost. The caller
// must hold p.mu.
func (p *Pool) dropLostLocked(s *session) {
	if s.state == stateLive && (s.linked || s.spare) && s.isLost() {
		p.unlinkLocked(s, CloseCrashed)
	}
}

// closeSession ends what there is of s, in state closing, and forgets it.
func (p *Pool) closeSession(s *session) {
	if s.client != nil {
		if err := s.client.Close(); err != nil {
			p.logCloseError(s, err)
		}
		p.explainDeath(s)
	}
	p.mu.Lock()
	p.closedLocked(s)
	lived := p.now() - s.opened
	p.mu.Unlock()
	p.tellBreaker()
	if s.client != nil {
		p.logClosed(s)
		if p.trace.SessionClosed != nil {
			<-s.ready // the connect tells of the opening, though s may be killed meanwhile
			p.trace.SessionClosed(s.origin(), s.reason, lived)
		}
	}
}

// dial connects, and makes every failure one that says whose it is.
func (p *Pool) dial(ctx context.Context, s *session) (client Client, err error) {
	defer func() {
		if v := recover(); v != nil {
			client, err = nil, fmt.Errorf("Dial panicked: %s", panicText(v))
		}
		if err == nil && client == nil {
			err = errors.New("Dial returned no client")
		}
		if err != nil {
			client, err = nil, p.startError(ctx, s, err)
		}
	}()
	if p.opts.Dial != nil {
		client, err := p.opts.Dial(ctx, s.srv.clone()) // it may change what it gets
		return client, s.group.redact.Error(err)
	}
	return p.dialDefault(ctx, s)
}

func (p *Pool) startError(ctx context.Context, s *session, err error) error {
	var (
		config *ConfigError
		start  *StartError
	)
	switch {
	case errors.As(err, &config):
		return config
	case errors.As(err, &start):
	default:
		start = &StartError{Phase: "connect", Err: err}
	}
	start.Server = s.label
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		start.Err = fmt.Errorf("no connection within %s", p.opts.connectTimeout())
	}
	return start
}
