package mcppool

import (
	"context"
	"log/slog"
)

// The log has one line for each event of a session's life. The attributes are
// always the same: session, server, reason, err.

func (p *Pool) log(level slog.Level, msg string, s *session, attrs ...slog.Attr) {
	l := p.opts.Logger
	if l == nil || !l.Enabled(context.Background(), level) {
		return
	}
	attrs = append(attrs, slog.String("session", s.id), slog.String("server", s.label))
	l.LogAttrs(context.Background(), level, msg, attrs...)
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
