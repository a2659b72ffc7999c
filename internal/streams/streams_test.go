package streams_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/rpc"
	"github.com/mcppool/mcppool/internal/streams"
)

// server is the far end of streams: it acknowledges each and ends it after holds.
type server struct {
	set    *streams.Set
	holds  time.Duration
	err    error // with which a stream ends
	opened []time.Duration
	begun  time.Time
}

func (s *server) listen(ctx context.Context, filter mcp.SubscriptionFilter, sent func(id string)) error {
	id := strconv.Itoa(len(s.opened))
	s.opened = append(s.opened, time.Since(s.begun))
	sent(id)
	granted, _ := json.Marshal(filter)
	s.set.Acknowledged(json.RawMessage(fmt.Sprintf(`{"notifications":%s,"_meta":{%q:%s}}`, granted, mcp.MetaKeySubscriptionID, id)))
	select {
	case <-time.After(s.holds):
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func newServer(ctx context.Context, holds time.Duration) *server {
	s := &server{holds: holds, begun: time.Now()}
	s.set = streams.New(ctx, s.listen)
	return s
}

func TestTheStreamOfToolsIsRenewedWithPausesThatGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		s := newServer(ctx, time.Second)
		renewed := 0
		s.set.WatchTools(func() { renewed++ })
		time.Sleep(20 * time.Second)
		end()
		s.set.Wait()
		require.Equal(t, []time.Duration{0, 2 * time.Second, 5 * time.Second, 10 * time.Second, 19 * time.Second}, s.opened)
		require.Equal(t, 4, renewed, "but for the first")
	})
}

func TestAStreamThatHeldForLongIsRenewedAsSoonAsTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		s := newServer(ctx, time.Hour)
		s.set.WatchTools(func() {})
		time.Sleep(3*time.Hour - time.Minute)
		end()
		s.set.Wait()
		require.Equal(t, []time.Duration{0, time.Hour + time.Second, 2*time.Hour + 2*time.Second}, s.opened)
	})
}

func TestAServerThatHasNoStreamsIsAskedForOneOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t.Context(), 0)
		s.err = &rpc.Error{Code: rpc.CodeMethodNotFound}
		s.set.WatchTools(func() {})
		time.Sleep(time.Hour)
		s.set.Wait()
		require.Len(t, s.opened, 1)
	})
}

func TestNothingIsOpenedOnceTheConnectionHasEnded(t *testing.T) {
	s := newServer(t.Context(), 0)
	s.set.Wait()
	s.set.WatchTools(func() {})
	require.EqualError(t, s.set.Subscribe(t.Context(), "u"), "connection closed")
	require.Empty(t, s.opened)
}

func TestASubscriptionSaysWhyItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("broken")
		set := streams.New(t.Context(), func(context.Context, mcp.SubscriptionFilter, func(string)) error { return failure })
		require.Equal(t, failure, set.Subscribe(t.Context(), "u"))
		require.Zero(t, set.Len())
	})
}
