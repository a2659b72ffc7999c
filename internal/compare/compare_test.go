package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/compare/internal/cheap"
)

func TestMain(m *testing.M) {
	if runAsChild(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// shapes are calls whose results are known to the last byte.
var shapes = []struct {
	tool  string
	args  map[string]any
	text  string
	image bool
}{
	{"echo", map[string]any{"text": "hello, world"}, "hello, world", false},
	{"text", map[string]any{"size": 300 * kB}, cheap.Text(300 * kB), false},
	{"image", map[string]any{"size": 300 * kB}, cheap.Image(300 * kB), true},
	{"count", map[string]any{"text": cheap.Text(300 * kB)}, "counted", false},
}

func TestEachContenderGivesTheServersAnswer(t *testing.T) {
	for name := range contenders {
		for _, on := range []target{{cheapLegacy, legacy}, {cheapModern, modern}, {cheapLegacy, auto}, {cheapModern, auto}} {
			if on.era != legacy && (name == conn || name == connInTurn || name == floor) {
				continue // they know no eras
			}
			t.Run(name+"/"+on.server, func(t *testing.T) {
				s, err := open(t.Context(), name, on)
				require.NoError(t, err)
				for _, shape := range shapes {
					r := row{args: shape.args}
					got, err := s.call(t.Context(), shape.tool, r.argsFor(name))
					require.NoError(t, err)
					requireReply(t, got, shape.text, shape.image)
				}
				require.NoError(t, s.close())
			})
		}
	}
}

func requireReply(t *testing.T, got reply, text string, image bool) {
	t.Helper()
	require.True(t, got.holds(len(text)))
	switch {
	case got.line != nil && image:
		require.Contains(t, string(got.line), `"data":"`+text+`"`)
	case got.line != nil:
		require.Contains(t, string(got.line), `"text":`+string(cheap.Quoted(text)))
	case got.data != nil:
		require.True(t, image)
		require.Equal(t, text, base64.StdEncoding.EncodeToString(got.data))
	default:
		require.Equal(t, text, got.text)
	}
}

func TestEachRowMeasuresEachOfItsContenders(t *testing.T) {
	m := quickMeasurer()
	for _, r := range rows() {
		if r.size > mB {
			continue // as good as the smaller ones, and slow
		}
		require.NoError(t, m.row(t.Context(), r), r.name)
		for _, name := range r.contenders {
			samples := m.results[resultKey(r.name, name)].samples
			require.Len(t, samples, 1)
			require.Positive(t, samples[0].n)
			require.Positive(t, samples[0].wall)
			require.Positive(t, samples[0].allocs)
		}
		m.printRow(io.Discard, r)
	}
	m.printTargets(io.Discard)
}

func TestSixtyFourCallersEachGetTheirOwnAnswer(t *testing.T) {
	for _, name := range []string{mcpGo, poolShared, goSDK, conn, floor} {
		s, err := open(t.Context(), name, target{cheapLegacy, legacy})
		require.NoError(t, err)
		failures := make(chan error, 64)
		for i := range 64 {
			text := strings.Repeat("x", i+1)
			go func() {
				args, _ := json.Marshal(map[string]any{"text": text})
				got, err := s.call(t.Context(), "echo", json.RawMessage(args))
				if err == nil && got.line == nil && got.text != text {
					err = errBlocks
				}
				failures <- err
			}()
		}
		for range 64 {
			require.NoError(t, <-failures, name)
		}
		require.NoError(t, s.close())
	}
}

func TestAnErrorNamesTheContenderThatCouldNotConnect(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := quickMeasurer()
	m.opts.contenders = regexp.MustCompile("^" + goSDK + "$")
	require.ErrorContains(t, m.row(ctx, rows()[0]), goSDK+": connect:")
}

func TestAnIdleSessionIsMeasured(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors and threads are counted in /proc")
	}
	for _, name := range idleContenders {
		cost, err := measureIdle(name, 3)
		require.NoError(t, err)
		require.Positive(t, cost.Goroutines, name)
		require.Positive(t, cost.Files, name)
	}
}

func TestARatioComparesWithinItsRound(t *testing.T) {
	m := quickMeasurer()
	at := func(wall ...time.Duration) *result {
		r := &result{}
		for _, w := range wall {
			r.samples = append(r.samples, sample{n: 1, wall: w})
		}
		return r
	}
	m.results[resultKey("row", pool)] = at(1, 20, 400)
	m.results[resultKey("row", mcpGo)] = at(4, 40, 1200)
	got := m.ratio("row", pool, mcpGo, rate)
	require.InDelta(t, 3, got.median, 1e-9)
	require.InDelta(t, 2, got.min, 1e-9)
	require.InDelta(t, 4, got.max, 1e-9)
	require.Empty(t, m.ratio("row", pool, floor, rate).String())
}

func TestATextIsRealisticAndOfItsSize(t *testing.T) {
	for n := range 300 {
		require.Len(t, cheap.Text(n), n)
	}
	text := cheap.Text(64 * kB)
	require.InDelta(t, 64*kB/80, strings.Count(text, "\n"), 100)
	require.Contains(t, text, `"`)
	require.Equal(t, text, strings.ToValidUTF8(text, "?"))
}

func quickMeasurer() *measurer {
	return &measurer{results: make(map[string]*result), opts: &options{
		rounds: 1, batch: time.Microsecond, rows: regexp.MustCompile(""), contenders: regexp.MustCompile(""),
	}}
}
