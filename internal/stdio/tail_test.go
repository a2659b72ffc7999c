//go:build unix

package stdio_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/stdio"
)

func TestTheLastWordsOfADyingServerAreWhole(t *testing.T) {
	const words = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten"
	said := `printf 'one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten' >&2; exit 3`
	for name, script := range map[string]string{
		"at once":               said,
		"in a call":             "read call; " + said,
		"after closing stdout":  "read call; exec >&-; " + said,
		"with a child's stderr": "read call; sleep 0 & " + said,
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				lines := make(chan string, 20)
				cfg := shellConfig(t, script)
				cfg.OnStderr = func(line []byte) { lines <- string(line) }
				c := open(t, cfg)
				_, err := call(t.Context(), c, "echo", `{}`)
				d := dead(t, err, stdio.ErrExited)
				require.Equal(t, 3, d.Exit.Code)
				require.Equal(t, words, d.StderrTail)
				var told []string
				for range strings.Count(words, "\n") + 1 {
					select {
					case line := <-lines:
						told = append(told, line)
					case <-time.After(2 * time.Second):
						require.FailNow(t, "a line wasn't told", "%q", told)
					}
				}
				require.Equal(t, words, strings.Join(told, "\n"))
				require.NoError(t, c.Close())
			}
		})
	}
}
