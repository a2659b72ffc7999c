package pages_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/pages"
)

func follow(next func(cursor mcp.Cursor) (mcp.Cursor, error)) (asked []mcp.Cursor, err error) {
	err = pages.Follow("tools/list", func(cursor mcp.Cursor) (mcp.Cursor, error) {
		asked = append(asked, cursor)
		return next(cursor)
	}, func() int { return len(asked) })
	return asked, err
}

func TestEveryPageIsAskedForOnceAndInOrder(t *testing.T) {
	next := map[mcp.Cursor]mcp.Cursor{"": "b", "b": "c"}
	asked, err := follow(func(cursor mcp.Cursor) (mcp.Cursor, error) { return next[cursor], nil })
	require.NoError(t, err)
	require.Equal(t, []mcp.Cursor{"", "b", "c"}, asked)
}

func TestAListWithoutEndIsAnError(t *testing.T) {
	asked, err := follow(func(mcp.Cursor) (mcp.Cursor, error) { return "again", nil })
	require.EqualError(t, err, "tools/list gave the same cursor again after 2 tools")
	require.Len(t, asked, 2)
	asked, err = follow(func(cursor mcp.Cursor) (mcp.Cursor, error) {
		n, _ := strconv.Atoi(string(cursor))
		return mcp.Cursor(strconv.Itoa(n + 1)), nil
	})
	require.EqualError(t, err, "tools/list has no end after 1000 pages and 1000 tools")
	require.Len(t, asked, pages.Max)
}

func TestAFailureEndsTheList(t *testing.T) {
	lost := errors.New("lost")
	asked, err := follow(func(mcp.Cursor) (mcp.Cursor, error) { return "b", lost })
	require.Equal(t, lost, err)
	require.Len(t, asked, 1)
}
