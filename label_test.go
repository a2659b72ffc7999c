package mcppool_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// labels are those of the open sessions, in no order.
func labels(p *mcppool.Pool) []string {
	var got []string
	for s := range p.Sessions() {
		got = append(got, s.Server)
	}
	return got
}

func TestNameIsTheLabelAndNoPartOfTheIdentity(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	named, renamed := mcppool.Server{Name: "my shell", Command: "sh"}, mcppool.Server{Name: "other", Command: "sh"}
	require.Equal(t, "my_shell", named.String())
	require.True(t, named.Equal(renamed))
	require.NoError(t, call(t.Context(), p, named, "s"))
	require.NoError(t, call(t.Context(), p, renamed, "s"))
	require.Equal(t, 1, f.dialed())
	require.Equal(t, []string{"my_shell"}, labels(p))
}

func TestTwoConfigurationsWithOneNameAreToldApart(t *testing.T) {
	p := newPool(t, &fakes{}, nil)
	first, second := mcppool.Server{Name: "db", Command: "db", Args: []string{"1"}}, mcppool.Server{Name: "db", Command: "db", Args: []string{"2"}}
	for _, srv := range []mcppool.Server{first, second, first} {
		require.NoError(t, call(t.Context(), p, srv, "s"))
	}
	got := labels(p)
	require.Len(t, got, 2)
	require.Contains(t, got, "db")
	require.NotEqual(t, got[0], got[1])
	require.Regexp(t, `^db(-[0-9a-f]{12})?$`, got[0])
	require.Regexp(t, `^db(-[0-9a-f]{12})?$`, got[1])
}

func TestAnEditedServerKeepsItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakes{closeTime: time.Second}, nil)
		before, after := mcppool.Server{Name: "db", Command: "db", Args: []string{"1"}}, mcppool.Server{Name: "db", Command: "db", Args: []string{"2"}}
		require.NoError(t, call(t.Context(), p, before, "s"))
		p.CloseServer(before) // its process takes a second to end
		require.NoError(t, call(t.Context(), p, after, "s"))
		require.Contains(t, labels(p), "db")
		for _, label := range labels(p) {
			require.Equal(t, "db", label)
		}
	})
}

func TestNamesOfServersLongGoneAreForgotten(t *testing.T) {
	p := newPool(t, &fakes{}, nil)
	for i := range 1000 {
		name := "tenant " + strconv.Itoa(i)
		srv := mcppool.Server{Name: name, Command: "c", Args: []string{name}}
		require.NoError(t, call(t.Context(), p, srv, ""))
	}
	require.Eventually(t, func() bool { return p.Stats().Open == 0 }, 10*time.Second, time.Millisecond)
	srv := mcppool.Server{Name: "last", Command: "c"}
	require.NoError(t, call(t.Context(), p, srv, ""))
	require.LessOrEqual(t, mcppool.NamesKept(p), 200)
}
