package toolbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

func TestAStaticCatalogRefusesEntriesItCouldNotTellApart(t *testing.T) {
	_, err := toolbox.NewStaticCatalog(toolbox.Entry{ID: "a"}, toolbox.Entry{ID: "a"})
	require.EqualError(t, err, `toolbox: the ID "a" comes twice`)
	_, err = toolbox.NewStaticCatalog(toolbox.Entry{})
	require.EqualError(t, err, "toolbox: an entry has no ID")
}

func TestAStaticCatalogListsWhatIsEnabledByID(t *testing.T) {
	c := static(t, toolbox.Entry{ID: "b"}, toolbox.Entry{ID: "off", Disabled: true}, toolbox.Entry{ID: "a"})
	enabled, err := c.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []toolbox.Entry{{ID: "a"}, {ID: "b"}}, enabled)
	off, err := c.Lookup(t.Context(), "off")
	require.NoError(t, err)
	require.True(t, off.Disabled)
	_, err = c.Lookup(t.Context(), "none")
	require.ErrorIs(t, err, toolbox.ErrUnknownServer)
}

func TestAnEntryThatCanNotBeUsedSaysWhyAndCostsNoOther(t *testing.T) {
	f := &fakes{}
	why := errors.New(`mcp.json:5: server "a": command is missing`)
	b, err := toolbox.New(newPool(t, f), static(t,
		toolbox.Entry{ID: "bad", Err: why},
		toolbox.Entry{ID: "bad,too", Err: why},
		toolbox.Entry{ID: "off", Err: why, Disabled: true},
		toolbox.Entry{ID: "good", Server: mcppool.Server{Command: "good"}},
	), nil)
	require.NoError(t, err)
	set := tools(t, b)
	require.Equal(t, []string{"mcp__good__echo"}, names(set))
	require.Len(t, set.Failed, 2)
	require.EqualError(t, set.Failed[0], `toolbox: server bad: mcp.json:5: server "a": command is missing`)
	require.Same(t, set, tools(t, b), "nothing has changed")

	for id, called := range map[string]string{"bad": "bad", "bad,too": "bad_too_a16e2b33"} {
		out := dispatch(t, b, toolbox.ToolName(id, "t"), "")
		require.ErrorIs(t, out.Err, why)
		var refused *toolbox.ServerError
		require.ErrorAs(t, out.Err, &refused)
		require.Equal(t, id, refused.Server)
		require.Equal(t, "Error: MCP server '"+called+"' is not usable", out.Text)
	}
	require.ErrorIs(t, dispatch(t, b, "mcp__off__t", "").Err, toolbox.ErrServerDisabled)
	require.Equal(t, []string(nil), f.served())
	require.NoError(t, dispatch(t, b, "mcp__good__t", "").Err)
}

func TestAnEntryThatBreaksKeepsItsSessionForWhenItIsMended(t *testing.T) {
	f := &fakes{}
	good := toolbox.Entry{ID: "s", Server: mcppool.Server{Command: "s"}}
	c := newEditable(good)
	b, err := toolbox.New(newPool(t, f), c, nil)
	require.NoError(t, err)
	require.NoError(t, dispatch(t, b, "mcp__s__t", "").Err)
	c.put(toolbox.Entry{ID: "s", Err: errors.New("broken")})
	require.Error(t, dispatch(t, b, "mcp__s__t", "").Err)
	c.put(good)
	require.NoError(t, dispatch(t, b, "mcp__s__t", "").Err)
	require.Equal(t, 1, f.dialed("s"))
}

func TestAnEntryThatBreaksBeforeTheSendingLetsTheCallThrough(t *testing.T) {
	good := toolbox.Entry{ID: "s", Server: mcppool.Server{Command: "s"}}
	broken := toolbox.Entry{ID: "s", Err: errors.New("broken")}
	c := newEditable(good)
	f := &fakes{connect: func(context.Context, string) error {
		c.put(broken)
		return nil
	}}
	b, err := toolbox.New(newPool(t, f), c, nil)
	require.NoError(t, err)
	require.NoError(t, dispatch(t, b, "mcp__s__t", "").Err, "what breaks is no removal")

	broken.Disabled = true
	c.put(good)
	other := toolbox.Conversation{Thread: "other"}
	require.ErrorIs(t, b.Dispatch(t.Context(), "mcp__s__t", nil, other).Err, mcppool.ErrServerClosed)
}
