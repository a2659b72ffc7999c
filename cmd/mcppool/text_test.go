package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATextOfAServerMovesNoCursor(t *testing.T) {
	require.Equal(t, "a [31mb c", plain("a\x1b[31mb\r\n\tc\x00"))
	require.Equal(t, "no mark", plain("\ufeffno mark\u202e"))
	require.Empty(t, plain(" \n"))
	long := plain(strings.Repeat("é", maxText))
	require.Equal(t, strings.Repeat("é", maxText/2)+"...", long)
	require.Equal(t, "é...", cut("éé", 3))
	require.Equal(t, "éé", cut("éé", 4))
}
