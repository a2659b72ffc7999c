package keyed_test

import (
	"maps"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/keyed"
)

func drawIdentity(t *rapid.T) *keyed.Identity {
	few := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 2, -1)
	pairs := rapid.MapOfN(few, few, 0, 3)
	return &keyed.Identity{
		Command: few.Draw(t, "command"), Dir: few.Draw(t, "dir"), PrivateDir: few.Draw(t, "private"),
		URL: few.Draw(t, "url"), Protocol: few.Draw(t, "protocol"),
		Args: rapid.SliceOfN(few, 0, 3).Draw(t, "args"),
		Env:  pairs.Draw(t, "env"), Header: pairs.Draw(t, "header"),
	}
}

// Whatever is remembered, what Known says is the digest, and that says what is equal.
func TestKnownDigestsAreTheDigests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			k    keyed.Known
			all  []*keyed.Identity
			held []*keyed.Kept
		)
		for range rapid.IntRange(1, 20).Draw(t, "n") {
			i := drawIdentity(t)
			all = append(all, i)
			if rapid.Bool().Draw(t, "known") {
				held = append(held, k.Keep(*i, i.Digest()))
			}
		}
		for _, i := range all {
			same := *i
			same.Args, same.Env = append([]string{}, i.Args...), maps.Clone(i.Env)
			require.Equal(t, i.Digest(), k.Digest(&same))
			for _, o := range all {
				require.Equal(t, i.Equal(o), i.Digest() == o.Digest())
			}
		}
		runtime.KeepAlive(held)
	})
}

// A set that changes after it was asked for is another one.
func TestKnownIsNoticedToHaveChanged(t *testing.T) {
	var k keyed.Known
	is := keyed.Identity{Command: "npx", Env: map[string]string{"A": "1"}}
	kept := k.Keep(is, is.Digest())
	asked := &keyed.Identity{Command: "npx", Env: map[string]string{"A": "1"}}
	require.Equal(t, is.Digest(), k.Digest(asked))
	asked.Env["A"] = "2"
	require.NotEqual(t, is.Digest(), k.Digest(asked))
	runtime.KeepAlive(kept)
}

func TestKnownIdentityIsFoundWithoutAllocating(t *testing.T) {
	var k keyed.Known
	is := keyed.Identity{Command: "npx", Args: []string{"-y", "pkg"}, Env: map[string]string{"A": "1", "B": "2"}}
	kept := k.Keep(is, keyed.Digest{1}) // which it hasn't, so that it is seen to be found
	require.Equal(t, keyed.Digest{1}, k.Digest(&keyed.Identity{Command: "npx", Args: []string{"-y", "pkg"}, Env: map[string]string{"B": "2", "A": "1"}}))
	require.Zero(t, testing.AllocsPerRun(100, func() { k.Digest(&is) }))
	runtime.KeepAlive(kept)
}

func BenchmarkDigest(b *testing.B) {
	i := &keyed.Identity{
		Command: "npx", Args: []string{"-y", "@playwright/mcp@latest", "--headless", "--isolated"},
		Env: map[string]string{"API_KEY": "sk-0123456789abcdef0123456789abcdef", "LOG_LEVEL": "warn", "REGION": "eu"},
	}
	var k keyed.Known
	b.Run("made", func(b *testing.B) {
		for b.Loop() {
			k.Digest(i)
		}
	})
	kept := k.Keep(*i, i.Digest())
	b.Run("known", func(b *testing.B) {
		for b.Loop() {
			k.Digest(i)
		}
	})
	runtime.KeepAlive(kept)
}

func TestWhatNobodyHoldsIsForgotten(t *testing.T) {
	var k keyed.Known
	is := keyed.Identity{Command: "npx"}
	func() {
		kept := k.Keep(is, keyed.Digest{1})
		runtime.GC()
		require.Equal(t, keyed.Digest{1}, k.Digest(&is))
		runtime.KeepAlive(kept)
	}()
	runtime.GC()
	require.Equal(t, is.Digest(), k.Digest(&is))
}
