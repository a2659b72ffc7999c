package toolbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

func tools(t testing.TB, b *toolbox.Box) *toolbox.ToolSet {
	t.Helper()
	set, err := b.Tools(t.Context())
	require.NoError(t, err)
	return set
}

func TestToolsAreListedInOneOrderWhateverTheServersTake(t *testing.T) {
	f := &fakes{list: func(_ context.Context, name string) ([]mcp.Tool, error) {
		return []mcp.Tool{mcp.NewTool("z"), mcp.NewTool("a." + name), mcp.NewTool("z")}, nil
	}}
	want := []string{"mcp__one__a_one_10a91d77", "mcp__one__z", "mcp__two__a_two_b986ca41", "mcp__two__z"}
	for range 5 {
		b, err := toolbox.New(newPool(t, f), newEditable(entries("two", "one")...), nil)
		require.NoError(t, err)
		set := tools(t, b)
		require.Equal(t, want, names(set))
		require.Empty(t, set.Failed)
		require.Equal(t, "one", set.Tools[0].Server)
		require.Equal(t, "a.one", set.Tools[0].Spec.Name)
	}
}

func TestADeadServerNeitherHoldsUpNorHidesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("no such program")
		f := &fakes{connect: func(ctx context.Context, name string) error {
			switch name {
			case "hangs":
				<-ctx.Done()
				return ctx.Err()
			case "down":
				return down
			}
			return nil
		}}
		b := newBox(t, f, &toolbox.Options{ListTimeout: 3 * time.Second}, "ok", "hangs", "down", "also-ok")
		begin := time.Now()
		set := tools(t, b)
		require.Equal(t, 3*time.Second, time.Since(begin))
		require.Equal(t, []string{"mcp__also-ok__echo", "mcp__ok__echo"}, names(set))
		require.Len(t, set.Failed, 2)
		require.Equal(t, "down", set.Failed[0].Server)
		require.ErrorIs(t, set.Failed[0], down)
		require.Regexp(t, "^toolbox: server down: tools/list .*no such program$", set.Failed[0].Error())
		require.Equal(t, "hangs", set.Failed[1].Server)
		require.EqualError(t, set.Failed[1], "toolbox: server hangs: the tools were not listed within 3s")
	})
}

func TestACallerOfToolsGetsWhatIsThereWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connect: func(ctx context.Context, name string) error {
			if name == "slow" {
				<-ctx.Done()
			}
			return ctx.Err()
		}}
		b := newBox(t, f, nil, "ok", "slow")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		set, err := b.Tools(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"mcp__ok__echo"}, names(set))
		require.ErrorIs(t, set.Failed[0], context.DeadlineExceeded)
		require.ErrorIs(t, set.Failed[0], toolbox.ErrListing)
		_, err = b.Tools(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, f.dialed("slow"), "the start goes on")
	})
}

func TestToolsAreListedOnceForAllWhoAskAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{list: func(context.Context, string) ([]mcp.Tool, error) {
			time.Sleep(time.Second)
			return []mcp.Tool{mcp.NewTool("t")}, nil
		}}
		b := newBox(t, f, nil, "s")
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if set, err := b.Tools(t.Context()); err != nil || len(set.Tools) != 1 {
					t.Error(set, err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, 1, f.listed())
		first := tools(t, b)
		require.Same(t, first, tools(t, b), "what hasn't changed isn't made again")
		require.Equal(t, 1, f.listed())
		require.Equal(t, 1, f.opened("s"), "the listing's session is kept for the first call")
	})
}

func TestAListingGoesOnForTheOthersWhenItsFirstCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{list: func(ctx context.Context, _ string) ([]mcp.Tool, error) {
			select {
			case <-time.After(time.Second):
				return []mcp.Tool{mcp.NewTool("t")}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
		b := newBox(t, f, nil, "s")
		ctx, leave := context.WithCancel(t.Context())
		first := make(chan *toolbox.ToolSet)
		go func() {
			set, _ := b.Tools(ctx)
			first <- set
		}()
		synctest.Wait()
		second := make(chan *toolbox.ToolSet)
		go func() {
			set, _ := b.Tools(t.Context())
			second <- set
		}()
		synctest.Wait()
		leave()
		require.ErrorIs(t, (<-first).Failed[0], context.Canceled)
		require.Equal(t, []string{"mcp__s__t"}, names(<-second))
		require.Equal(t, 1, f.listed())
	})
}

func TestAFailedListingIsNotRepeatedForTheCoolOffUnlessAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connect: func(context.Context, string) error { return errors.New("down") }}
		b := newBox(t, f, nil, "s")
		require.Len(t, tools(t, b).Failed, 1)
		time.Sleep(60*time.Second - 1)
		require.Len(t, tools(t, b).Failed, 1)
		require.Equal(t, 1, f.dialed("s"))
		time.Sleep(1)
		require.Len(t, tools(t, b).Failed, 1)
		synctest.Wait()
		require.Equal(t, 2, f.dialed("s"), "in the background")
		_, err := b.Refresh(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, f.dialed("s"))
		time.Sleep(4*time.Minute - 1)
		tools(t, b)
		synctest.Wait()
		require.Equal(t, 3, f.dialed("s"), "one that stays dead is asked less and less often")
	})
}

func TestAListingIsRenewedWhenItIsOldOrTheConfigurationChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		c := newEditable(entries("s")...)
		b := boxOf(t, newPool(t, f), c, &toolbox.Options{ListMaxAge: time.Minute})
		listed := func() int {
			synctest.Wait() // what is old is renewed in the background
			return f.listed()
		}
		tools(t, b)
		time.Sleep(time.Minute - 1)
		tools(t, b)
		require.Equal(t, 1, listed())
		time.Sleep(1)
		require.Len(t, tools(t, b).Tools, 1)
		require.Equal(t, 2, listed())
		c.put(toolbox.Entry{ID: "s", Server: mcppool.Server{Command: "s", Env: map[string]string{"A": "1"}}})
		tools(t, b)
		require.Equal(t, 3, listed())
		c.put(toolbox.Entry{ID: "other", Server: mcppool.Server{Command: "s", Env: map[string]string{"A": "1"}}})
		require.Equal(t, []string{"mcp__other__echo", "mcp__s__echo"}, names(tools(t, b)))
		require.Equal(t, 3, listed(), "one configuration is listed once, whatever it is called")
	})
}

func TestAllowAndDenyListsCountAtOnce(t *testing.T) {
	f := &fakes{list: func(context.Context, string) ([]mcp.Tool, error) {
		return []mcp.Tool{mcp.NewTool("a"), mcp.NewTool("b"), mcp.NewTool("c")}, nil
	}}
	e := entries("s")[0]
	c := newEditable(e)
	b, err := toolbox.New(newPool(t, f), c, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"mcp__s__a", "mcp__s__b", "mcp__s__c"}, names(tools(t, b)))
	e.Tools.Exclude = []string{"b"}
	c.put(e)
	require.Equal(t, []string{"mcp__s__a", "mcp__s__c"}, names(tools(t, b)))
	e.Tools.Include = []string{"b", "c"}
	c.put(e)
	require.Equal(t, []string{"mcp__s__c"}, names(tools(t, b)))
	e.Tools.Include = []string{}
	c.put(e)
	require.Empty(t, names(tools(t, b)), "an empty list allows nothing")
	e.Tools.Include, e.Disabled = nil, true
	c.put(e)
	require.Empty(t, names(tools(t, b)))
	require.Equal(t, 1, f.listed())
}

func TestTheCatalogsErrorIsThatOfTools(t *testing.T) {
	c := newEditable()
	c.fail(errors.New("database is down"))
	b, err := toolbox.New(newPool(t, &fakes{}), c, nil)
	require.NoError(t, err)
	_, err = b.Tools(t.Context())
	require.EqualError(t, err, "database is down")
}

func TestWhatIsRememberedOfConfigurationsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		c := newEditable()
		b, err := toolbox.New(newPool(t, f), c, nil)
		require.NoError(t, err)
		for i := range 1100 {
			c.put(toolbox.Entry{ID: "s", Server: mcppool.Server{Command: "s", Dir: string(rune('a' + i))}})
			tools(t, b)
			time.Sleep(1)
		}
		require.Equal(t, toolbox.MaxListings, toolbox.Listings(b))
		require.Equal(t, 1100, f.listed())
		tools(t, b)
		require.Equal(t, 1100, f.listed(), "the last one is still known")
	})
}

func TestNewNeedsAPoolAndACatalog(t *testing.T) {
	_, err := toolbox.New(nil, static(t), nil)
	require.Error(t, err)
	_, err = toolbox.New(newPool(t, &fakes{}), nil, nil)
	require.Error(t, err)
}
