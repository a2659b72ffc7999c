package stdio

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALineOverTheLimitIsRefusedAlsoWhenItsEndComesWithTheSameRead(t *testing.T) {
	const limit = 1000
	for size, want := range map[int]error{limit: nil, limit + 1: ErrTooLong} {
		c := &Conn{cfg: Config{MaxMessageSize: limit, Traffic: new(Traffic)}}
		r := &reader{Conn: c, lines: newLineBuffer(limit)}
		err := r.chunk(func(b []byte) (int, error) { return copy(b, strings.Repeat("x", size)+"\n"), nil })
		require.Equal(t, want, err, size)
	}
}
