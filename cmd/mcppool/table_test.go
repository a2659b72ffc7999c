package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEntriesThatAreNoToolAreCountedBesideTheTools(t *testing.T) {
	tools := 3
	s := server{Tools: &tools, OddTools: []oddTool{{Name: "x", Reason: "its schema is a number"}}}
	require.Contains(t, s.row(), "3 (1 odd)")
}
