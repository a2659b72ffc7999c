//go:build unix

package stdio

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/proc"
)

// A caller's read is woken in the same way for the reader as for a loss, and the
// reader undoes that.
func TestALossWhileTheReaderTakesTheTurnBackIsNotUndone(t *testing.T) {
	stdout, server, err := os.Pipe()
	require.NoError(t, err)
	defer stdout.Close()
	defer server.Close()
	c := &Conn{proc: &proc.Process{Stdout: stdout}}
	r := newReader(c, stdout)

	r.turns.reader <- nil
	require.NoError(t, r.takeBack())
	_, err = server.WriteString("x")
	require.NoError(t, err)
	n, err := stdout.Read(make([]byte, 1))
	require.NoError(t, err, "it can be read again")
	require.Equal(t, 1, n)

	c.lose(ErrExited)
	r.turns.reader <- nil
	require.Equal(t, errWoken, r.takeBack())
}
