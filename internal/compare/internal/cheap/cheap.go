// Package cheap is a server that answers for nearly nothing. A program that
// imports it runs as that server when its arguments are "serve" and [Legacy] or
// [Modern].
package cheap

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

const (
	Legacy = "cheap"        // knows initialize
	Modern = "cheap-modern" // is of the revision 2026-07-28
)

// The server runs before the packages that are initialized later, of which one
// alone, a schema compiler that the other libraries need, takes milliseconds:
// longer than any client takes to connect. The order is that of the import
// paths, see https://go.dev/ref/spec#Program_initialization.
func init() { //nolint:gochecknoinits // what it is for is to come first
	if len(os.Args) < 3 || os.Args[1] != "serve" {
		return
	}
	switch kind := os.Args[2]; kind {
	case Legacy, Modern:
		s := server{modern: kind == Modern, contents: make(map[string][]byte)}
		s.run()
		syscall.Exit(0) // os.Exit sleeps for a second in a race build
	}
}

// server answers by cutting strings, so that what is measured is the
// client. Its tools: echo returns its argument "text"; text and image return
// "size" bytes; count returns a small result whatever the arguments are.
type server struct {
	modern   bool
	contents map[string][]byte // by tool and size
}

func (s *server) run() {
	in := make([]byte, 0, 1<<20)
	var out []byte
	seen := 0 // of in, without a newline
	for {
		if len(in) == cap(in) {
			in = append(make([]byte, 0, 2*cap(in)), in...)
		}
		n, err := os.Stdin.Read(in[len(in):cap(in)])
		if err != nil {
			return
		}
		in = in[:len(in)+n]
		out = out[:0]
		rest := in
		for {
			i := bytes.IndexByte(rest[seen:], '\n')
			if i < 0 {
				seen = len(rest)
				break
			}
			out = s.answer(out, rest[:seen+i])
			rest = rest[seen+i+1:]
			seen = 0
		}
		in = in[:copy(in, rest)]
		if len(out) > 0 {
			if _, err := os.Stdout.Write(out); err != nil {
				return
			}
		}
	}
}

// ends is as much of a line's two ends as is looked at; clients put the
// arguments, which may be large, in the middle.
const ends = 1 << 10

func (s *server) answer(out, line []byte) []byte {
	head, tail := line[:min(len(line), ends)], line[max(0, len(line)-ends):]
	_, id, ok := bytes.Cut(head, []byte(`"id":`))
	if !ok {
		return out // a notification
	}
	id = id[:bytes.IndexAny(id, ",}")]
	_, method, _ := bytes.Cut(head, []byte(`"method":"`))
	method, _, _ = bytes.Cut(method, []byte(`"`))

	out = append(out, `{"jsonrpc":"2.0","id":`...)
	out = append(out, id...)
	switch string(method) {
	case "tools/call":
		out = append(out, `,"result":{`...)
		if s.modern {
			// Modern servers say in each result who they are.
			out = append(out, `"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"cheap","version":"1"}},`...)
		}
		out = append(out, `"content":[`...)
		out = s.content(out, head, tail, line)
		out = append(out, `]}`...)
	case "initialize":
		out = append(out, `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},`+
			`"serverInfo":{"name":"cheap","version":"1"}}`...)
	case "server/discover":
		if s.modern {
			out = append(out, `,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],`+
				`"capabilities":{"tools":{}},"serverInfo":{"name":"cheap","version":"1"},`+
				`"ttlMs":0,"cacheScope":"private"}`...)
		} else {
			out = append(out, `,"error":{"code":-32601,"message":"method not found"}`...)
		}
	default:
		out = append(out, `,"result":{}`...)
	}
	return append(out, "}\n"...)
}

func (s *server) content(out, head, tail, line []byte) []byte {
	is := func(tool string) bool {
		name := []byte(`"name":"` + tool + `"`)
		return bytes.Contains(head, name) || bytes.Contains(tail, name)
	}
	switch {
	case is("echo"):
		_, text, _ := bytes.Cut(line, []byte(`"text":"`))
		text = text[:bytes.IndexByte(text, '"')]
		out = append(out, `{"type":"text","text":"`...)
		out = append(out, text...)
		return append(out, `"}`...)
	case is("text"):
		return append(out, s.large("text", head)...)
	case is("image"):
		return append(out, s.large("image", head)...)
	}
	return append(out, `{"type":"text","text":"counted"}`...)
}

// large returns the content of the size that the arguments ask for.
func (s *server) large(tool string, head []byte) []byte {
	_, size, _ := bytes.Cut(head, []byte(`"size":`))
	size = size[:bytes.IndexAny(size, ",}")]
	key := tool + string(size)
	if c := s.contents[key]; c != nil {
		return c
	}
	n, err := strconv.Atoi(string(size))
	if err != nil {
		panic("bug: the size is no number: " + err.Error())
	}
	var c []byte
	if tool == "text" {
		c = fmt.Appendf(c, `{"type":"text","text":%s}`, Quoted(Text(n)))
	} else {
		c = fmt.Appendf(c, `{"type":"image","data":"%s","mimeType":"image/png"}`, Image(n))
	}
	s.contents[key] = c
	return c
}
