package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

// texts are valid and invalid ones; encoding/json says which.
var texts = []string{
	``, ` `, `null`, ` true `, `false`, `tru`, `truex`, `nul`, `fals `, `0`, `-0`, `-`, `01`, `1.`, `.5`, `1.5`, `1e`, `1e5`, `1E+5`, `1e-`, `+1`, `1 2`,
	`""`, `"a"`, `"`, `"a`, `"\"`, `"\""`, `"\x"`, `"\'"`, `"\u12"`, `"\u12g4"`, `"\u1234"`, `"\ud800"`, `"\ud83d\ude00"`, `"\u`, `"\`,
	"\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\xff\"", "\"tab\there\"", "\"12345678\x01\"", "\"1234567\"", "\"12345678\"", "\"123456789\"",
	`[]`, `[ ]`, `[1]`, `[1,]`, `[,1]`, `[1 2]`, `[1,2`, `[`, `]`, `[[]]`, `[1,[2,{"a":[]}]]`, "[\n1\r,\t2 ]", "[\v1]", "[1\x00]",
	`{}`, `{ }`, `{"a":1}`, `{"a":1,}`, `{,"a":1}`, `{"a"}`, `{"a":}`, `{"a" 1}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":1,"b":2}`, `{"a":1}}`, `{"a":1}{`, `{"a":{"b":{}}}`, `{`, `{"a"`, `{"a":`, `{"a":1,`,
	`{"é":"ü"}`, `{"\u0061":1,"a":2}`, "\xef\xbb\xbf{}", `{"a":"` + strings.Repeat("x", 100) + `\n` + strings.Repeat("é", 30) + `"}`,
}

func TestValidAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range texts {
		err := jsonscan.Valid([]byte(text))
		require.Equal(t, json.Valid([]byte(text)), err == nil, "%q: %v", text, err)
	}
}

func TestValidStopsAtTheSameDepthAsEncodingJSON(t *testing.T) {
	for _, depth := range []int{9_999, 10_000, 10_001, 20_000} {
		for _, text := range []string{
			strings.Repeat("[", depth) + strings.Repeat("]", depth),
			strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth),
		} {
			require.Equal(t, json.Valid([]byte(text)), jsonscan.Valid([]byte(text)) == nil, "%d", depth)
		}
	}
}

func TestAWalkCountsTheDepthAroundIt(t *testing.T) {
	for _, depth := range []int{10_000, 10_001} {
		text := []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		s := jsonscan.New(text)
		require.True(t, s.Enter('['))
		for s.Elem() {
			s.Skip()
		}
		require.Equal(t, json.Valid(text), s.End() == nil, "%d", depth)
	}
}

func TestAWalkPastManyObjectsIsNoDeeperAtTheEnd(t *testing.T) {
	requireSameWalk(t, []byte("["+strings.Repeat(`{},[],`, 10_000)+"1]"))
}

// walk reads a text with every method that goes into values, not with Skip.
func walk(s *jsonscan.Scanner) any {
	switch s.Peek() {
	case '{':
		m := map[string]any{}
		s.Enter('{')
		for {
			key, ok := s.Key()
			if !ok {
				return m
			}
			m[key.Decode()] = walk(s)
		}
	case '[':
		a := []any{}
		s.Enter('[')
		for s.Elem() {
			a = append(a, walk(s))
		}
		return a
	case '"':
		str := s.String()
		return str.Decode()
	default:
		var v any
		_ = json.Unmarshal(s.Skip(), &v)
		return v
	}
}

func requireSameWalk(t *testing.T, text []byte) {
	t.Helper()
	var want any
	wantErr := json.Unmarshal(text, &want)
	if _, ok := wantErr.(*json.UnmarshalTypeError); ok { // a number that no float64 holds
		return
	}
	s := jsonscan.New(text)
	got := walk(&s)
	err := s.End()
	require.Equal(t, wantErr == nil, err == nil, "%q: %v", text, err)
	if err == nil {
		require.Equal(t, want, got, "%q", text)
	}
}

func TestAWalkReadsWhatEncodingJSONReads(t *testing.T) {
	for _, text := range texts {
		requireSameWalk(t, []byte(text))
	}
}

func TestSkipReturnsTheValueWithoutTheSpacesAround(t *testing.T) {
	s := jsonscan.New([]byte(` { "a" : [ 1 , 2 ] , "b" : "x" } `))
	require.True(t, s.Enter('{'))
	key, ok := s.Key()
	require.True(t, ok)
	require.Equal(t, "a", key.Decode())
	raw := s.Skip()
	require.Equal(t, `[ 1 , 2 ]`, string(raw))
	require.Equal(t, len(raw), cap(raw), "an append must not write into the text")
	key, ok = s.Key()
	require.True(t, ok)
	require.Equal(t, "b", key.Decode())
	require.Equal(t, `"x"`, string(s.Skip()))
	_, ok = s.Key()
	require.False(t, ok)
	require.NoError(t, s.End())
}

func TestEnterRefusesAnotherKindOfValue(t *testing.T) {
	s := jsonscan.New([]byte(` [1]`))
	require.False(t, s.Enter('{'))
	require.EqualError(t, s.End(), "invalid JSON at byte 1: not an object")
	require.False(t, s.Elem())
	require.Zero(t, s.Peek())
	require.Nil(t, s.Skip())
	s = jsonscan.New([]byte(`{}`))
	require.False(t, s.Enter('['))
	require.EqualError(t, s.End(), "invalid JSON at byte 0: not an array")
	_, ok := s.Key()
	require.False(t, ok)
}

func TestACopyOfAScannerIsAMarkToGoBackTo(t *testing.T) {
	s := jsonscan.New([]byte(`[1,{"a":2},3]`))
	s.Enter('[')
	s.Elem()
	s.Skip()
	s.Elem()
	mark := s
	s.Enter('{')
	s.Key()
	s = mark
	require.Equal(t, `{"a":2}`, string(s.Skip()))
	require.True(t, s.Elem())
	require.Equal(t, `3`, string(s.Skip()))
	require.False(t, s.Elem())
	require.NoError(t, s.End())
}

func TestErrorsSayWhere(t *testing.T) {
	for _, c := range []struct {
		text, want string
	}{
		{``, "invalid JSON at byte 0: unexpected end"},
		{`  `, "invalid JSON at byte 2: unexpected end"},
		{`{"a":1`, "invalid JSON at byte 6: unexpected end"},
		{`{"a":"x`, "invalid JSON at byte 7: unexpected end"},
		{`{"a" 1}`, "invalid JSON at byte 5: expected ':'"},
		{`{"a":1]`, "invalid JSON at byte 6: expected ',' or '}'"},
		{`{a:1}`, "invalid JSON at byte 1: expected a key"},
		{`[1 2]`, "invalid JSON at byte 3: expected ',' or ']'"},
		{`[1,]`, "invalid JSON at byte 3: expected a value"},
		{`[tru]`, "invalid JSON at byte 4: expected true"},
		{`1.x`, "invalid JSON at byte 2: expected a digit"},
		{`"\q"`, "invalid JSON at byte 2: unknown escape"},
		{`"\u12x4"`, `invalid JSON at byte 5: expected four hex digits after \u`},
		{"\"a\tb\"", "invalid JSON at byte 2: control character in a string"},
		{`1 2`, "invalid JSON at byte 2: text after the value"},
	} {
		require.EqualError(t, jsonscan.Valid([]byte(c.text)), c.want, "%q", c.text)
	}
}

func TestScanningAllocatesNothing(t *testing.T) {
	text := []byte(`{"a":[1,2.5,-3e7,true,false,null],"b":{"c":"plain","d":"é\n"}}`)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if jsonscan.Valid(text) != nil {
			panic("invalid")
		}
		s := jsonscan.New(text)
		s.Enter('{')
		for key, ok := s.Key(); ok; key, ok = s.Key() {
			if key.Is("b") {
				s.Enter('{')
				for _, ok := s.Key(); ok; _, ok = s.Key() {
					_ = s.String()
				}
				continue
			}
			s.Skip()
		}
		if s.End() != nil {
			panic("invalid")
		}
	}))
}

func FuzzValid(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := jsonscan.Valid(text)
		require.Equal(t, json.Valid(text), err == nil, "%v", err)
		if len(text) > 0 && len(text) < 1<<16 {
			requireSameWalk(t, text)
		}
		if fixed := jsonscan.Repair(text); fixed != nil {
			require.Error(t, err)
		}
		if line := jsonscan.Line(text); err == nil {
			require.True(t, json.Valid(line))
		}
	})
}

func TestASecondScanTakesTheLongestStringAsKnown(t *testing.T) {
	for _, text := range []string{`"x"`, `""`, `{"a":"","b":["abc","d\u00e9f\n"],"c":"xy"}`, ` [ "é" , {"long enough":1} ] `, `{}`, `17`} {
		outer := jsonscan.New([]byte(`{"before, which is long":"too",` + `"it":` + text + `,"after":"as long as that"}`))
		outer.Enter('{')
		outer.Key()
		outer.Skip()
		outer.Key()
		raw, long := outer.SkipLong()
		require.Equal(t, strings.TrimSpace(text), string(raw))

		known, fresh := jsonscan.NewScanned(raw, long), jsonscan.New(raw)
		if fresh.Peek() == '"' {
			require.Equal(t, fresh.String(), known.String())
		} else {
			require.Equal(t, fresh.Skip(), known.Skip())
		}
		require.NoError(t, known.End())
	}
}

func TestASecondScanDoesNotLookIntoTheLongestString(t *testing.T) {
	first := jsonscan.New([]byte(` [ "a", "0123456789" , "b" ] `))
	raw, long := first.SkipLong()
	copy(raw[bytes.IndexByte(raw, '0'):], "01\"\n\\x67")
	require.Error(t, jsonscan.Valid(raw))
	again := jsonscan.NewScanned(raw, long)
	again.Skip()
	require.NoError(t, again.End())
}
