package lastwords_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/lastwords"
)

func TestTheLineThatSaysWhyIsFound(t *testing.T) {
	for name, tc := range map[string]struct{ printed, want string }{
		"nothing": {" \n\t\n", ""},
		"one":     {"waiting for the database\n", "waiting for the database"},
		"last":    {"starting\nlistening\n\n", "listening"},
		"node": {
			"node:internal/modules/cjs/loader:1\n  throw err;\n\nError: Cannot find module '/srv/x.js'\n    at Module._resolve (node:1:1)\n    at main\n\nNode.js v22.1.0\n",
			"Error: Cannot find module '/srv/x.js'",
		},
		"python": {
			"Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n    import y\nModuleNotFoundError: No module named 'y'\n",
			"ModuleNotFoundError: No module named 'y'",
		},
		"go":     {"panic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\t/x.go:3 +0x1\nexit status 2\n", "panic: boom"},
		"colour": {"\x1b[31merror\x1b[0m: \x1b]0;title\x07no key\r\n", "error: no key"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, lastwords.Of(tc.printed)) })
	}
}

func TestWhateverIsPrintedBecomesOneShortLineThatCanBeShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := lastwords.Of(string(rapid.SliceOf(rapid.Byte()).Draw(t, "tail")))
		require.True(t, utf8.ValidString(words))
		require.NotContains(t, words, "\n")
		require.NotContains(t, words, "\x1b")
	})
	long := lastwords.Of("error: " + strings.Repeat("ä", 1000))
	require.LessOrEqual(t, len(long), 250)
	require.True(t, utf8.ValidString(long))
}
