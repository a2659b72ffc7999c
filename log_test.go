package mcppool_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// logbook is a log whose lines lack what differs from run to run.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// take gives the lines since the last time.
func (l *logbook) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := slices.Collect(strings.Lines(l.buf.String()))
	l.buf.Reset()
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.ReplaceAll(line, "mcppool: ", ""))
	}
	return lines
}

func (l *logbook) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "session", "server":
			return slog.Attr{}
		}
		return a
	}}))
}

func TestLogTellsOfBorrowsAtDebugOfSessionsAtInfoAndOfTroubleAtWarn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logbook
		f := &fakes{connectTime: time.Second}
		p := newPool(t, f, &mcppool.Options{Logger: book.logger(slog.LevelDebug)})
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		synctest.Wait()
		require.ElementsMatch(t, []string{
			`level=INFO msg="session opened" took=1s oneshot=false`,
			`level=DEBUG msg="session borrowed"`,
			`level=DEBUG msg="tool call ended" tool=t outcome=ok took=0s`,
			`level=DEBUG msg="session released"`,
		}, book.take())

		f.call = func(_ context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if c != f.all()[0] {
				return mcp.NewToolResultText("ok"), nil
			}
			c.die()
			return nil, mcppool.MarkNotSent(errors.New("it has just died"))
		}
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		synctest.Wait()
		lines := book.take()
		require.Contains(t, lines, `level=WARN msg="session was lost before it was used, and is replaced" reason=crashed`)
		require.Contains(t, lines, `level=WARN msg="session closed" reason=crashed`)

		s, err := p.Acquire(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
		require.NoError(t, err)
		s.Discard()
		synctest.Wait()
		require.Equal(t, []string{
			`level=DEBUG msg="session borrowed"`,
			`level=DEBUG msg="session released" reason=discarded`,
			`level=INFO msg="session closed" reason=discarded`,
		}, book.take())
	})
}

func TestLogHasNothingOfACallAtInfo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logbook
		p := newPool(t, &fakes{}, &mcppool.Options{Logger: book.logger(slog.LevelInfo)})
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		synctest.Wait()
		book.take()
		for range 3 {
			require.NoError(t, call(t.Context(), p, stdio, "s"))
		}
		require.Empty(t, book.take())
	})
}
