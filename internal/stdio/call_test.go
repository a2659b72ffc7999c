package stdio_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCallReturnsTheResult(t *testing.T) {
	c := start(t, serverConfig(t))
	require.Equal(t, "hello", mustCall(t, c, "echo", `{"text":"hello"}`))
	require.Equal(t, "1", mustCall(t, c, "count", `{}`))
	require.Equal(t, "2", mustCall(t, c, "count", `{}`))
}
