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
