package mcppool

import (
	"context"
	"log/slog"
)

// The log has one line for each event: at Debug what happens with every call, at
// Info the beginning and the end of a session, at Warn what went wrong with one.
// The attributes have the same names everywhere: session, server, reason, err, took
// and oneshot; tool and outcome of a call; line and lines of output; panic and stack
// of a handler; pause of a server that is held off.

func (p *Pool) log(level slog.Level, msg string, s *session, attrs ...slog.Attr) {
	l := p.opts.Logger
	if l == nil || !l.Enabled(context.Background(), level) {
		return
	}
	attrs = append(attrs, slog.String("session", s.id), slog.String("server", s.label))
	l.LogAttrs(context.Background(), level, msg, attrs...)
}

// debug is log for what happens with every call, which must cost nothing when
// nobody listens.
func (p *Pool) debug(msg string, s *session, attrs func() []slog.Attr) {
	if l := p.opts.Logger; l != nil && l.Enabled(context.Background(), slog.LevelDebug) {
		p.log(slog.LevelDebug, msg, s, attrs()...)
	}
}

func (p *Pool) logBorrowed(s *session) {
	p.debug("mcppool: session borrowed", s, func() []slog.Attr { return nil })
}

// logReleased tells why, unless it is empty, the session serves nobody else.
func (p *Pool) logReleased(s *session, why CloseReason) {
	p.debug("mcppool: session released", s, func() []slog.Attr {
		if why == "" {
			return nil
		}
		return []slog.Attr{slog.String("reason", string(why))}
	})
}

func (p *Pool) logCall(s *session, tool string, begun moment, how outcome) {
	p.debug("mcppool: tool call ended", s, func() []slog.Attr {
		return []slog.Attr{
			slog.String("tool", tool), slog.String("outcome", string(outcomes[how])), slog.Duration("took", p.now()-begun),
		}
	})
}

// logRetry tells that a caller goes on to another session, since nothing was sent
// to this one.
func (p *Pool) logRetry(s *session, why CloseReason) {
	p.log(slog.LevelWarn, "mcppool: session was lost before it was used, and is replaced", s, slog.String("reason", string(why)))
}

func (p *Pool) logOpened(s *session, oneShot bool) {
	p.log(slog.LevelInfo, "mcppool: session opened", s,
		slog.Duration("took", (p.now()-s.opened)), slog.Bool("oneshot", oneShot))
}

func (p *Pool) logStartFailed(s *session, err error) {
	if err == nil {
		return // it came up after it was given up; its close is logged
	}
	p.log(slog.LevelWarn, "mcppool: session did not start", s, slog.String("err", err.Error()))
}

func (p *Pool) logClosed(s *session) {
	level := slog.LevelInfo
	if s.reason == CloseCrashed {
		level = slog.LevelWarn
	}
	p.log(level, "mcppool: session closed", s, slog.String("reason", string(s.reason)))
}

func (p *Pool) logCloseError(s *session, err error) {
	p.log(slog.LevelWarn, "mcppool: closing a session failed", s, slog.String("err", err.Error()))
}

func (p *Pool) logBreaker(e breakerEvent) {
	if l := p.opts.Logger; l != nil {
		l.LogAttrs(context.Background(), slog.LevelWarn, "mcppool: server that failed is "+string(e.state),
			slog.String("server", e.server), slog.Duration("pause", e.pause))
	}
}
