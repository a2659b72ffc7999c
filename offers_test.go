package mcppool_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/offering"
	"github.com/mcppool/mcppool/mcppooltest"
)

// full is a server of an era that offers something of everything.
func full(t testing.TB, era mcppool.Protocol) mcppool.Server {
	t.Helper()
	srv := real(t, "")
	name, value := offering.Env()
	srv.Env[name] = value
	srv.Protocol = era
	return srv
}

// with runs f with the session of scope "s".
func with(t testing.TB, p *mcppool.Pool, srv mcppool.Server, f func(ctx context.Context, s *mcppool.Session)) {
	t.Helper()
	require.NoError(t, p.Do(within(t, 10*time.Second), srv, mcppool.Borrow{Scope: "s"}, func(ctx context.Context, s *mcppool.Session) error {
		f(ctx, s)
		return nil
	}))
}

func TestSessionReachesAllThatItsServerOffers(t *testing.T) {
	for _, era := range []mcppool.Protocol{mcppool.ProtocolLegacy, mcppool.ProtocolModern} {
		t.Run(string(era), func(t *testing.T) {
			updated := make(chan string, 8)
			p := realPool(t, &mcppool.Options{Handlers: mcppool.Handlers{
				Notification: func(from mcppool.Origin, n mcp.JSONRPCNotification) {
					if n.Method == "notifications/resources/updated" {
						updated <- fmt.Sprint(from.Scope, " ", n.Params.AdditionalFields["uri"])
					}
				},
			}})
			srv := full(t, era)
			with(t, p, srv, func(ctx context.Context, s *mcppool.Session) {
				info := s.Info()
				require.Equal(t, "offering", info.ServerInfo.Name)
				require.Equal(t, "1.2.3", info.ServerInfo.Version)
				require.Equal(t, offering.Instructions, info.Instructions)

				page, err := s.ListResources(ctx, mcp.ListResourcesRequest{})
				require.NoError(t, err)
				require.NotEmpty(t, page.NextCursor)
				templates, err := s.ListResourceTemplates(ctx, mcp.ListResourceTemplatesRequest{})
				require.NoError(t, err)
				require.Len(t, templates.ResourceTemplates, 1)
				prompts, err := s.ListPrompts(ctx, mcp.ListPromptsRequest{})
				require.NoError(t, err)
				require.Len(t, prompts.Prompts, 1)

				var read mcp.ReadResourceRequest
				read.Params.URI = offering.URI
				contents, err := s.ReadResource(ctx, read)
				require.NoError(t, err)
				require.Len(t, contents.Contents, 1)
				read.Params.URI = offering.URI + "/missing"
				_, err = s.ReadResource(ctx, read)
				var answer *mcppool.RPCError
				require.ErrorAs(t, err, &answer)
				require.Contains(t, answer.Message, "no such note")

				var get mcp.GetPromptRequest
				get.Params.Name = "greet"
				prompt, err := s.GetPrompt(ctx, get)
				require.NoError(t, err)
				require.Len(t, prompt.Messages, 1)
				var complete mcp.CompleteRequest
				complete.Params.Ref = mcp.PromptReference{Type: "ref/prompt", Name: "greet"}
				complete.Params.Argument = mcp.CompleteArgument{Name: "name", Value: "A"}
				completed, err := s.Complete(ctx, complete)
				require.NoError(t, err)
				require.Equal(t, []string{"Ada"}, completed.Completion.Values)

				var level mcp.SetLevelRequest
				level.Params.Level = mcp.LoggingLevelDebug
				require.NoError(t, s.SetLevel(ctx, level))

				var sub mcp.SubscribeRequest
				sub.Params.URI = offering.URI
				require.NoError(t, s.Subscribe(ctx, sub))
			})
			require.Equal(t, "debug", say(t, p, srv, "s", "level", nil), "the level outlives the borrow")
			require.Equal(t, "true", say(t, p, srv, "s", "touch", map[string]any{"uri": offering.URI}), "so does the subscription")
			require.Equal(t, "s "+offering.URI, <-updated)
			with(t, p, srv, func(ctx context.Context, s *mcppool.Session) {
				var unsub mcp.UnsubscribeRequest
				unsub.Params.URI = offering.URI
				require.NoError(t, s.Unsubscribe(ctx, unsub))
			})
			require.Eventually(t, func() bool { return say(t, p, srv, "s", "subscribed", nil) == "" }, 5*time.Second, time.Millisecond)
		})
	}
}

func TestClientThatOnlyCallsToolsSaysSo(t *testing.T) {
	p := newPool(t, &fakes{}, nil)
	with(t, p, stdio, func(ctx context.Context, s *mcppool.Session) {
		require.Nil(t, s.Info())
		_, err := s.ListPrompts(ctx, mcp.ListPromptsRequest{})
		var bad *mcppool.ConfigError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, "Options.Dial", bad.Field)
		require.ErrorContains(t, err, "prompts/list")
		require.ErrorAs(t, s.Subscribe(ctx, mcp.SubscribeRequest{}), &bad)
	})
	require.NoError(t, call(t.Context(), p, stdio, "s"), "the session was not touched")
}

func TestProbeOfADefaultClientTellsTheLivingFromTheWedged(t *testing.T) {
	p := realPool(t, nil)
	for _, era := range []mcppool.Protocol{mcppool.ProtocolLegacy, mcppool.ProtocolModern} {
		with(t, p, full(t, era), func(ctx context.Context, s *mcppool.Session) {
			require.NoError(t, mcppool.ProbeSession(ctx, s))
			rss, ok := mcppool.RSS(s)
			if _, err := os.Stat("/proc/self/statm"); err == nil {
				require.True(t, ok)
				require.Positive(t, rss)
			}
		})
	}
	wedged := real(t, "")
	wedged.Protocol = mcppool.ProtocolLegacy
	setHostile(&wedged, "stopreading=2")
	with(t, p, wedged, func(_ context.Context, s *mcppool.Session) {
		require.ErrorIs(t, mcppool.ProbeSession(within(t, 20*time.Millisecond), s), context.DeadlineExceeded)
	})
}

// prober is a client with a Probe of its own.
type prober struct {
	*fake
	err error
}

func (p prober) Probe(context.Context) error { return p.err }

func TestProbeOfACustomClientIsItsOwnOrAListing(t *testing.T) {
	f := &fakes{}
	probe := func(ctx context.Context, p *mcppool.Pool) (err error) {
		with(t, p, stdio, func(_ context.Context, s *mcppool.Session) { err = mcppool.ProbeSession(ctx, s) })
		return err
	}
	p := newPool(t, f, nil)
	require.NoError(t, probe(t.Context(), p))
	f.list = func(mcp.ListToolsRequest) (*mcp.ListToolsResult, error) { return nil, mcp.ErrMethodNotFound }
	require.NoError(t, probe(t.Context(), p), "an error is an answer")
	over, cancel := context.WithCancel(t.Context())
	f.list = func(mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
		cancel()
		return nil, over.Err()
	}
	require.ErrorIs(t, probe(over, p), context.Canceled)
	f.list = func(mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
		return nil, transport.NewError(transport.ErrTransportClosed)
	}
	require.ErrorIs(t, probe(t.Context(), p), mcppool.ErrSessionLost)

	own := errors.New("own")
	f2 := &fakes{}
	p = newPool(t, f2, &mcppool.Options{Dial: func(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
		c, err := f2.dial(ctx, srv)
		return prober{c.(*fake), own}, err
	}})
	require.ErrorIs(t, probe(t.Context(), p), own)
}

func TestProcessKilledWhileIdleIsGoneWithoutACall(t *testing.T) {
	p := realPool(t, nil)
	srv := full(t, mcppool.ProtocolAuto)
	pid, err := strconv.Atoi(say(t, p, srv, "s", "pid", nil))
	require.NoError(t, err)
	require.NoError(t, killProcess(pid))
	require.Eventually(t, func() bool {
		s := p.Stats()
		return s.Open == 0 && s.Kept == 0 && s.Closed[mcppool.ReasonCrashed] == 1
	}, time.Second, time.Millisecond)
	require.NoError(t, mcppool.CheckInvariants(p))
}

func TestSpareThatDiesWhileItConnectsIsNotKept(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, &mcppool.Options{Dial: func(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
		c, err := f.dial(ctx, srv)
		c.(*fake).die()
		return c, err
	}})
	require.NoError(t, p.Prewarm(t.Context(), stdio, 1))
	require.Eventually(t, func() bool { return p.Stats().Open == 0 }, 5*time.Second, time.Millisecond)
	require.EqualValues(t, 1, p.Stats().Closed[mcppool.ReasonCrashed])
}

func TestProcessThatDiesWithItsAnswerIsNotKept(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "")
	setHostile(&srv, "")
	require.Equal(t, "last", say(t, p, srv, "s", "last", nil))
	require.Eventually(t, func() bool { return p.Stats().Open == 0 }, time.Second, time.Millisecond)
}

func TestProcessThatDiesAfterEachStartIsNotTriedForEver(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "")
	srv.Protocol = mcppool.ProtocolLegacy
	setHostile(&srv, "die=initialized")
	for range 5 {
		err := call(within(t, 10*time.Second), p, srv, "s")
		require.Error(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	}
	require.LessOrEqual(t, p.Stats().Connects, uint64(10))
}

// setHostile makes a server one of package mcppooltest.
func setHostile(srv *mcppool.Server, modes string) { maps.Copy(srv.Env, mcppooltest.Env(modes)) }

func killProcess(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return errors.Join(p.Kill(), p.Release())
}
