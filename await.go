package mcppool

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/mcppool/mcppool/internal/turn"
)

// await waits until s is connected and the caller has its turn, and looks then
// whether s may still be used.
func (s *session) await(ctx context.Context, w *turn.Place, check func() bool) error {
	select {
	case <-s.ready:
	default:
		if s.admitted != nil {
			if err := s.awaitPlace(ctx); err != nil {
				return err
			}
		}
		if err := s.awaitConnect(ctx); err != nil {
			return err
		}
		if err := ask(check); err != nil {
			return err
		}
	}
	if s.connectErr != nil {
		return s.connectErr
	}
	if w != nil {
		if err := s.awaitTurn(ctx, w); err != nil {
			return err
		}
	}
	return s.usable(ctx, check)
}

// awaitConnect waits for the connect. A close, the caller's ctx and the end of the
// connect may tie: the close wins over the connect in usable, and ctx over
// neither, since what it would waste is there.
func (s *session) awaitConnect(ctx context.Context) (err error) {
	defer func(end func(error)) { end(err) }(s.wait(ctx, WaitConnect))
	select {
	case <-s.ready:
		return s.connectErr
	case <-s.killed:
		return s.cause
	case <-s.pool.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errTooLong becomes a BusyError for the caller.
var errTooLong = fmt.Errorf("%w: waited at a limit for as long as MaxWait allows", ErrBusy)

// awaitPlace waits at a limit.
func (s *session) awaitPlace(ctx context.Context) (err error) {
	select {
	case <-s.admitted:
		return nil
	default:
	}
	defer func(end func(error)) { end(err) }(s.wait(ctx, WaitLimit))
	var tooLong <-chan time.Time
	if d := s.pool.maxWait(); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		tooLong = timer.C
	}
	select {
	case <-s.admitted:
		return nil
	case <-s.killed:
		return s.cause
	case <-s.pool.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case <-tooLong:
		return errTooLong
	}
}

// awaitTurn waits for the turn. A close wins when it ties; a turn that ties with
// the end of ctx is passed on by Leave. When the session is lost all who wait are
// sent on, in order.
func (s *session) awaitTurn(ctx context.Context, w *turn.Place) (err error) {
	select {
	case <-w.Called():
	default:
		end := s.wait(ctx, WaitTurn)
		defer func() { end(err) }()
		for lost, called := s.lost, false; !called; {
			select {
			case <-w.Called():
				called = true
			case <-s.killed:
				return s.cause
			case <-lost:
				lost = nil
				s.pool.lostSession(s) // a custom client doesn't tell
			case <-s.pool.done:
				return ErrClosed
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	if w.Moved() {
		return errStale
	}
	return nil
}

// usable looks at s right before it is used: by then it may have been killed,
// replaced or lost, and the caller may be late or its configuration changed.
func (s *session) usable(ctx context.Context, check func() bool) error {
	switch {
	case s.isKilled():
		return s.cause
	case s.isLost(): // before stale, which it makes it: deaths are counted
		return errDead
	case s.stale.Load():
		return errStale
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.suspect.Load() {
		if err := s.reassure(ctx); err != nil {
			return err
		}
	}
	return ask(check)
}

// ask runs a Check. One that panics counts as a no.
func ask(check func() bool) (err error) {
	if check == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w (Check panicked: %s)", ErrServerClosed, panicText(v))
		}
	}()
	if !check() {
		return ErrServerClosed
	}
	return nil
}

// panicText is what is safe to say of a panic's value: the runtime's own words,
// or else its type.
func panicText(v any) string {
	if err, ok := v.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a %T", v)
}
