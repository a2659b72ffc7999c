package mcppooltest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
)

// fast answers each request with as little work as possible: initialize as a
// server of an old protocol, server/discover as one that doesn't know it, and
// everything else as a call of a tool, with 64 bytes of text or as many as the
// argument "n" says, which must be near the start of the line. The id must come
// right after "jsonrpc".
func fast() {
	in := make([]byte, 0, 1<<20)
	var out []byte
	text := bytes.Repeat([]byte("0123456789abcde "), 1<<16)
	for {
		if len(in) == cap(in) {
			in = append(in, 0)[:len(in)]
		}
		n, err := os.Stdin.Read(in[len(in):cap(in)])
		if n == 0 || err == io.EOF {
			return
		}
		in = in[:len(in)+n]
		out = out[:0]
		rest := in
		for {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			out = fastAnswer(out, rest[:i], text)
			rest = rest[i+1:]
		}
		in = in[:copy(in, rest)]
		if _, err := os.Stdout.Write(out); err != nil {
			return
		}
	}
}

func fastAnswer(out, line, text []byte) []byte {
	_, id, ok := bytes.Cut(line[:min(len(line), 64)], []byte(`"id":`))
	if !ok {
		return out // a notification
	}
	id = id[:bytes.IndexAny(id, ",}")]
	switch {
	case bytes.Contains(line[:min(len(line), 80)], []byte(`"method":"initialize"`)):
		return fmt.Appendf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18",`+
			`"capabilities":{"tools":{}},"serverInfo":{"name":"fast","version":"1"}}}`+"\n", id)
	case bytes.Contains(line[:min(len(line), 80)], []byte(`"method":"server/`)):
		return fmt.Appendf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`+"\n", id)
	}
	size := 64
	if _, n, ok := bytes.Cut(line[:min(len(line), 256)], []byte(`"n":`)); ok {
		size, _ = strconv.Atoi(string(n[:bytes.IndexAny(n, ",}")]))
	}
	out = append(out, `{"jsonrpc":"2.0","id":`...)
	out = append(out, id...)
	out = append(out, `,"result":{"content":[{"type":"text","text":"`...)
	for size > 0 {
		n := min(size, len(text))
		out = append(out, text[:n]...)
		size -= n
	}
	return append(out, "\"}]}}\n"...)
}
