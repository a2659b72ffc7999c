// Package pages follows the cursors of a list.
package pages

import (
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
)

// Max bounds a list whose cursors always move on.
const Max = 1000

// Follow calls page for each page of the list called name, the first with the empty
// cursor, until that returns no next one or fails. count is how many items there are,
// for the error of a list that has no end.
func Follow(name string, page func(cursor mcp.Cursor) (next mcp.Cursor, err error), count func() int) error {
	seen := map[mcp.Cursor]bool{}
	for cursor := mcp.Cursor(""); ; {
		seen[cursor] = true
		next, err := page(cursor)
		switch {
		case err != nil || next == "":
			return err
		case seen[next]:
			return fmt.Errorf("%s gave the same cursor again after %d tools", name, count())
		case len(seen) >= Max:
			return fmt.Errorf("%s has no end after %d pages and %d tools", name, len(seen), count())
		}
		cursor = next
	}
}
