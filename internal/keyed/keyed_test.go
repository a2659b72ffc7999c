package keyed_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/keyed"
)

func TestDigestsOfDifferentValuesDiffer(t *testing.T) {
	n := func() keyed.Frames { return keyed.New(nil) }
	for name, different := range map[string][]keyed.Frames{
		"two texts":  {n().Text("a").Text("b"), n().Text("ab").Text(""), n().Text("").Text("ab")},
		"two lists":  {n().Texts([]string{"a", "b"}).Texts(nil), n().Texts([]string{"a"}).Texts([]string{"b"}), n().Texts([]string{"ab"}).Texts(nil)},
		"pairs":      {n().Pairs(map[string]string{"a": "bc"}), n().Pairs(map[string]string{"ab": "c"}), n().Pairs(map[string]string{"a": "b", "c": ""})},
		"list, text": {n().Texts([]string{"a"}).Text("b"), n().Texts(nil).Text("ab"), n().Texts([]string{"a", "b"}).Text("")},
	} {
		seen := make(map[keyed.Digest]bool)
		for _, f := range different {
			seen[f.Sum()] = true
		}
		require.Len(t, seen, len(different), name)
	}
}

func TestOrderOfPairsDoesNotCount(t *testing.T) {
	pairs := make(map[string]string)
	for i := range 40 { // more than are sorted on the stack
		pairs[strconv.Itoa(i)] = "x"
	}
	want := keyed.New(nil).Pairs(pairs).Sum()
	for range 20 {
		require.Equal(t, want, keyed.New(nil).Pairs(pairs).Sum())
	}
}

func TestSmallConfigurationIsDigestedOnTheStack(t *testing.T) {
	args, env := []string{"-y", "pkg"}, map[string]string{"A": "1", "B": "2"}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var stack [768]byte
		keyed.New(stack[:0]).Text("npx").Texts(args).Pairs(env).Sum()
	}))
}
