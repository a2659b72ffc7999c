package encode_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/encode"
)

type refuses struct{}

func (refuses) MarshalJSON() ([]byte, error) { return nil, errors.New("secret") }

func TestJSONIsNotEscapedForHTML(t *testing.T) {
	for want, v := range map[string]any{
		`{"a":"<&>"}`: map[string]any{"a": "<&>"},
		`{}`:          map[string]any(nil),
		`[1]`:         []int{1},
		`null`:        (*int)(nil),
		`{"n":1.0}`:   json.RawMessage(`{"n":1.0}`),
	} {
		got, err := encode.JSON(v)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

func TestObjectIsOneLineAndNeverNull(t *testing.T) {
	for _, tc := range []struct {
		v    any
		want string
	}{
		{nil, `{}`},
		{map[string]any{}, `{}`},
		{(*struct{})(nil), `{}`},
		{json.RawMessage(nil), `{}`},
		{json.RawMessage("null"), `{}`},
		{json.RawMessage("{\n\"n\":12345678901234567890.10}"), `{ "n":12345678901234567890.10}`},
		{struct{ N int64 }{9007199254740993}, `{"N":9007199254740993}`},
	} {
		got, err := encode.Object(tc.v)
		require.NoError(t, err)
		require.Equal(t, tc.want, string(got))
	}
	for reason, v := range map[string]any{
		"isn't a JSON object": []string{"secret"},
		"can't be encoded":    map[string]any{"secret": make(chan int)},
	} {
		_, err := encode.Object(v)
		require.ErrorContains(t, err, reason)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := encode.Object(json.RawMessage(`{"a":"secret"`))
	require.ErrorContains(t, err, "isn't a JSON object")
}

func TestReasonHoldsNoValues(t *testing.T) {
	for reason, v := range map[string]any{
		"the Go type chan int":       make(chan int),
		"infinite or NaN":            math.Inf(1),
		"encode_test.refuses failed": refuses{},
	} {
		_, err := encode.JSON(map[string]any{"k": v})
		require.Error(t, err)
		require.Contains(t, encode.Reason(err), reason)
		require.NotContains(t, encode.Reason(err), "secret")
	}
	require.Equal(t, "encoding/json refused it", encode.Reason(errors.New("secret")))
}

type broken string

func (b broken) MarshalJSON() ([]byte, error) { return []byte(b), nil }

func TestWhatAMarshalerGivesIsValidAndOnOneLine(t *testing.T) {
	raw, err := encode.Object(broken("{\n\"a\":\r\n[1,\t2]}"))
	require.NoError(t, err)
	require.Equal(t, `{"a":[1,2]}`, string(raw))
	for _, text := range []string{"{", `{"a"}`, "", "{}{}"} {
		_, err = encode.Object(broken(text))
		require.Error(t, err, text)
	}
	_, err = encode.Object(broken("[]"))
	require.ErrorContains(t, err, "isn't a JSON object")
}
