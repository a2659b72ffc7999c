package label_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/keyed"
	"github.com/mcppool/mcppool/internal/label"
)

func TestPlainTakesOffWhatNumberedAdds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z.-]{1,20}`).Draw(t, "name")
		d := keyed.New(nil).Text(name).Sum()
		require.Equal(t, name, label.Plain(label.Numbered(name, d)))
	})
	for _, plain := range []string{"", "npx", "-0123456789ab", "x-0123456789az", "x0123456789ab"} {
		require.Equal(t, plain, label.Plain(plain))
	}
}

// At any moment no two that are in use have one name, and who took a name first has it
// plain.
func TestNobodyInUseSharesAName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var book label.Book
		used := make(map[keyed.Digest]string)
		inUse := func(d keyed.Digest) bool { _, ok := used[d]; return ok }
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			d := keyed.Digest{byte(rapid.IntRange(0, 200).Draw(t, "who"))}
			if inUse(d) {
				delete(used, d)
				continue
			}
			name := strconv.Itoa(rapid.IntRange(0, 150).Draw(t, "name"))
			got := book.Take(name, d, inUse)
			for other, taken := range used {
				require.NotEqual(t, taken, got, "%v and %v", other, d)
			}
			require.Equal(t, name, label.Plain(got))
			used[d] = got
			require.LessOrEqual(t, book.Len(), 2*len(used)+64)
		}
	})
}
