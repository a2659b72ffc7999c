package stdio

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinesAreCutWhateverTheReadsAre(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var stream []byte
	var want []string
	for i := range 300 {
		line := strings.Repeat(fmt.Sprint(i%10), rng.IntN(1<<rng.IntN(20)))
		want = append(want, line)
		stream = append(append(stream, line...), '\n')
	}
	stream = append(stream, "the rest"...)

	for _, most := range []int{1000, 5000, 70000, 1 << 20} {
		l := newLineBuffer(1 << 20)
		var got []string
		var kept [][]byte // lines that were given away
		var keptWant []string
		for in := stream; len(in) > 0; {
			space := l.space()
			require.NotEmpty(t, space)
			require.LessOrEqual(t, len(l.buf), 1<<20+readChunk)
			n := copy(space, in[:min(len(in), 1+rng.IntN(most))])
			in = in[n:]
			l.read(n)
			for {
				line, ok := l.next()
				if !ok {
					break
				}
				got = append(got, string(line))
				if l.give(len(line)) != nil {
					kept, keptWant = append(kept, line), append(keptWant, string(line))
				}
			}
			require.False(t, l.tooLong())
			if rng.IntN(3) == 0 && l.large() {
				l.shrink()
			}
		}
		require.Equal(t, want, got)
		require.Equal(t, "the rest", string(l.rest()))
		require.NotEmpty(t, kept)
		for i := range kept {
			require.True(t, bytes.Equal(kept[i], []byte(keptWant[i])))
		}
	}
}

func TestALineOverTheLimitIsSeenBeforeMuchMoreIsRead(t *testing.T) {
	l := newLineBuffer(100_000)
	total := 0
	for !l.tooLong() {
		_, ok := l.next()
		require.False(t, ok)
		n := len(l.space())
		l.read(n)
		total += n
	}
	require.LessOrEqual(t, total, 100_000+readChunk+sharedBuffer)
}

func TestTheTailKeepsTheLastBytes(t *testing.T) {
	tl := tail{size: 5}
	for _, s := range []string{"ab", "cd", "", "ef", "0123456789", "x"} {
		tl.write([]byte(s))
	}
	require.Equal(t, "6789x", tl.String())
}

func TestStderrLinesAreCut(t *testing.T) {
	var c lineCutter
	var got []string
	emit := func(line []byte) { got = append(got, string(line)) }
	c.write([]byte("one\r\n\ntw"), emit)
	c.write([]byte("o\n"+strings.Repeat("x", 10000)), emit)
	c.write([]byte(strings.Repeat("x", 10000)+"\nend"), emit)
	c.flush(emit)
	require.Equal(t, []string{"one", "two", strings.Repeat("x", maxStderrLine), "end"}, got)
}
