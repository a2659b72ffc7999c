package frame_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcppool/mcppool/internal/frame"
)

func BenchmarkParse(b *testing.B) {
	prose := strings.Repeat(`The quick brown fox jumps over \"the\" lazy dog, and then it goes home for tea.\n`, 1<<20/83)
	for _, c := range []struct{ name, line string }{
		{"small", `{"jsonrpc":"2.0","id":123,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 64) + `"}]}}`},
		{"text1MB", `{"jsonrpc":"2.0","id":123,"result":{"content":[{"type":"text","text":"` + prose + `"}]}}`},
		{"progress", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":5}}`},
		{"log", `2026-01-01 12:00:00 INFO something happened in the server`},
	} {
		line := []byte(c.line)
		b.Run(c.name+"/frame", func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = frame.Parse(line)
			}
		})
		b.Run(c.name+"/encodingjson", func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				var m struct {
					ID                    json.RawMessage
					Method                string
					Params, Result, Error json.RawMessage
				}
				_ = json.Unmarshal(line, &m)
			}
		})
	}
}

func BenchmarkAppendToolCall(b *testing.B) {
	args := []byte(`{"city":"Paris","days":3}`)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = frame.AppendToolCall(buf[:0], 12345, frame.ToolCall{Name: "get_weather", Args: args})
	}
}
