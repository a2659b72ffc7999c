package encode_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/encode"
)

// encoded is what encoding/json makes of a value.
func encoded(t require.TestingT, v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(v))
	return strings.TrimSuffix(b.String(), "\n")
}

// decoded is a text with its digits.
func decoded(t require.TestingT, text string) (v any) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&v))
	return v
}

func value(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.String().AsAny(), rapid.Bool().AsAny(), rapid.Int().AsAny(), rapid.Int64().AsAny(), rapid.Float64().AsAny(),
		rapid.SampledFrom([]any{0.0, math.Copysign(0, -1), 1e21, 1e20, 1e-6, 1e-7, 5, "<&>\u2028\x00\x7f\xff\b\f", json.Number("1e999"), json.RawMessage(`{"a" : 1}`), map[string]any(nil), []any(nil), []string{"a"}}),
	}
	if depth < 3 {
		leaves = append(leaves, rapid.SliceOfN(value(depth+1), 0, 4).AsAny(), rapid.MapOfN(rapid.String(), value(depth+1), 0, 4).AsAny())
	}
	return rapid.OneOf(leaves...)
}

func TestObjectsAreEncodedAsByEncodingJSON(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := rapid.MapOfN(rapid.String(), value(0), 1, 30).Draw(rt, "object")
		got, err := encode.JSON(m)
		require.NoError(rt, err)
		require.NotContains(rt, string(got), "\n")
		require.Equal(rt, decoded(rt, encoded(rt, m)), decoded(rt, string(got)))
	})
}

func TestWhatCannotBeEncodedIsStillRefused(t *testing.T) {
	cycle := map[string]any{}
	cycle["c"] = cycle
	deep := map[string]any{}
	for range 100 {
		deep = map[string]any{"d": deep}
	}
	for _, m := range []map[string]any{cycle, {"a": math.NaN()}, {"a": []any{math.Inf(1)}}, {"a": make(chan int)}} {
		_, err := encode.JSON(m)
		require.Error(t, err)
	}
	got, err := encode.JSON(deep)
	require.NoError(t, err)
	require.Equal(t, encoded(t, deep), string(got))
}

func TestPlainArgumentsTakeOneAllocation(t *testing.T) {
	args := map[string]any{"text": strings.Repeat("x", 64), "n": 5, "deep": map[string]any{"a": []any{1.5, true, nil}}}
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = encode.JSON(args) }), 1.0)
}
