package toolresult_test

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/frame"
)

func results() []struct {
	name string
	raw  []byte
} {
	const size = 1 << 20
	const prose = `The quick brown fox jumps over \"the\" lazy dog, and then it goes home for tea.\n`
	const foreign = `Съешь же ещё этих мягких французских булок, да выпей чаю. 日本語の文章。\n`
	random := make([]byte, size*3/4)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	text := func(body string) []byte { return []byte(`{"content":[{"type":"text","text":"` + body + `"}]}`) }
	var rows strings.Builder
	for i := range 1000 {
		if i > 0 {
			rows.WriteByte(',')
		}
		rows.WriteString(`{"id":123456,"name":"some name","price":12.5,"tags":["a","b"],"ok":true}`)
	}
	return []struct {
		name string
		raw  []byte
	}{
		{"64B", text(strings.Repeat("x", 64))},
		{"64KB", text(strings.Repeat(prose, 1<<16/len(prose)))},
		{"text1MB", text(strings.Repeat(prose, size/len(prose)))},
		{"utf8_1MB", text(strings.Repeat(foreign, size/len(foreign)))},
		{"ascii_escapes1MB", text(strings.Repeat(`\u4e2d\u6587`, size/12))},
		{"base64_1MB", []byte(`{"content":[{"type":"image","mimeType":"image/png","data":"` + base64.StdEncoding.EncodeToString(random) + `"}]}`)},
		{"resource1MB", []byte(`{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"` + strings.Repeat(prose, size/len(prose)) + `"}}]}`)},
		{"structured", []byte(`{"content":[],"structuredContent":{"rows":[` + rows.String() + `]}}`)},
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range results() {
		b.Run(c.name+"/toolresult", func(b *testing.B) {
			b.SetBytes(int64(len(c.raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decoder.Decode(c.raw); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/mcpgo", func(b *testing.B) {
			b.SetBytes(int64(len(c.raw)))
			b.ReportAllocs()
			for b.Loop() {
				raw := json.RawMessage(c.raw)
				if _, err := mcp.ParseCallToolResult(&raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLine is all that is done to an answer's bytes between the pipe and the caller.
func BenchmarkLine(b *testing.B) {
	for _, c := range results() {
		line := []byte(`{"jsonrpc":"2.0","id":123,"result":` + string(c.raw) + "}\n")
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				m, err := frame.Parse(line)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := decoder.Decode(m.Result); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
