package stdio

import "bytes"

const (
	smallBuffer  = 4 << 10 // of an idle connection
	sharedBuffer = 128 << 10
	readChunk    = 64 << 10 // what a pipe gives at most in one read
)

// lineBuffer cuts a byte stream into lines. It has a small buffer of its own,
// goes on to a shared one and then to one made for the line at hand. It never
// holds more than a line of the limit and a chunk.
type lineBuffer struct {
	buf     []byte // buf[start:end] is what was read and not yet returned
	start   int
	end     int
	scanned int // buf[start:scanned] has no newline

	small []byte
	limit int // bytes of one line
	hint  int // size of the last line that was given away: the next one grows in one step
}

func newLineBuffer(limit int) *lineBuffer {
	small := make([]byte, smallBuffer)
	return &lineBuffer{buf: small, small: small, limit: limit}
}

// next returns the next whole line without its newline; it aliases the buffer
// and is good until the next call of space or shrink.
func (l *lineBuffer) next() ([]byte, bool) {
	i := bytes.IndexByte(l.buf[l.scanned:l.end], '\n')
	if i < 0 {
		l.scanned = l.end
		return nil, false
	}
	line := l.buf[l.start : l.scanned+i]
	l.start = l.scanned + i + 1
	l.scanned = l.start
	return line, true
}

// rest returns what follows the last newline.
func (l *lineBuffer) rest() []byte { return l.buf[l.start:l.end] }

// tooLong reports that the line at hand is over the limit; it is asked when
// next found none.
func (l *lineBuffer) tooLong() bool { return l.end-l.start > l.limit }

// space returns where the next read goes; never empty as long as tooLong is
// false.
func (l *lineBuffer) space() []byte {
	if l.start == l.end {
		l.start, l.end, l.scanned = 0, 0, 0
	}
	if len(l.buf)-l.end < smallBuffer/8 {
		if l.end-l.start > len(l.buf)/2 {
			l.grow()
		} else {
			l.moveTo(l.buf)
		}
	}
	return l.buf[l.end:]
}

func (l *lineBuffer) read(n int) { l.end += n }

func (l *lineBuffer) grow() {
	if len(l.buf) == smallBuffer {
		l.moveTo(sharedSlice())
		return
	}
	size := min(max(2*len(l.buf), l.hint+readChunk), l.limit+readChunk)
	if size <= len(l.buf) {
		l.moveTo(l.buf)
		return
	}
	old := l.buf
	l.moveTo(largeBuffer(size))
	putBuffer(old)
}

// large reports whether shrink would do something for an empty buffer.
func (l *lineBuffer) large() bool { return len(l.buf) > smallBuffer }

// shrink goes back to the small buffer if nothing is held.
func (l *lineBuffer) shrink() {
	if l.start == l.end {
		old := l.buf
		l.moveTo(l.small)
		putBuffer(old)
	}
}

// give leaves the buffer to the holder of a line in it, if the line fills a
// good part of it and whatever follows is not much to move; otherwise it returns nil.
// The buffer is to be given to putBuffer when the line isn't needed any more.
func (l *lineBuffer) give(line int) (given []byte) {
	held := l.end - l.start
	switch {
	case len(l.buf) == smallBuffer:
		return nil
	case len(l.buf) == sharedBuffer && line < max(keptFrame, held):
		return nil
	case len(l.buf) > sharedBuffer && line < len(l.buf)/4:
		return nil
	case len(l.buf) > sharedBuffer:
		l.hint = line
	}
	given = l.buf
	switch {
	case held < smallBuffer/2:
		l.moveTo(l.small)
	case held < sharedBuffer/2:
		l.moveTo(sharedSlice())
	default:
		l.moveTo(largeBuffer(max(2*held, sharedBuffer+1)))
	}
	return given
}

func (l *lineBuffer) moveTo(to []byte) {
	n := copy(to, l.buf[l.start:l.end])
	l.buf, l.scanned = to, l.scanned-l.start
	l.start, l.end = 0, n
}
