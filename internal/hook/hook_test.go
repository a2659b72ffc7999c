package hook_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/hook"
)

func TestBothAreCalledInTurnAndNilIsLeftOut(t *testing.T) {
	var calls string
	a, b := func(int, int) { calls += "a" }, func(int, int) { calls += "b" }
	hook.Join2(a, b)(0, 0)
	hook.Join2(a, nil)(0, 0)
	hook.Join2(nil, b)(0, 0)
	require.Equal(t, "abab", calls)
	require.Nil(t, hook.Join2[int, int](nil, nil))
}
