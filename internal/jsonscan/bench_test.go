package jsonscan_test

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

// payloads are JSON strings of 1 MB.
func payloads() []struct {
	name string
	text []byte
} {
	const size = 1 << 20
	random := make([]byte, size*3/4)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	quote := func(s string) []byte {
		b, _ := json.Marshal(s)
		return b
	}
	prose := "The quick brown fox jumps over \"the\" lazy dog, and then it goes home for tea.\n"
	foreign := "Съешь же ещё этих мягких французских булок, да выпей чаю. 日本語の文章。\n"
	return []struct {
		name string
		text []byte
	}{
		{"text", quote(strings.Repeat(prose, size/len(prose)))},
		{"base64", quote(base64.StdEncoding.EncodeToString(random))},
		{"utf8", quote(strings.Repeat(foreign, size/len(foreign)))},
		{"escapes", []byte(`"` + strings.Repeat(`\u4e2d\u6587`, size/12) + `"`)},
	}
}

func BenchmarkValid(b *testing.B) {
	for _, p := range payloads() {
		b.Run(p.name+"/jsonscan", func(b *testing.B) {
			b.SetBytes(int64(len(p.text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := jsonscan.Valid(p.text); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(p.name+"/encodingjson", func(b *testing.B) {
			b.SetBytes(int64(len(p.text)))
			b.ReportAllocs()
			for b.Loop() {
				if !json.Valid(p.text) {
					b.Fatal("invalid")
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, p := range payloads() {
		b.Run(p.name+"/jsonscan", func(b *testing.B) {
			b.SetBytes(int64(len(p.text)))
			b.ReportAllocs()
			for b.Loop() {
				s := jsonscan.New(p.text)
				str := s.String()
				_ = str.Decode()
			}
		})
		b.Run(p.name+"/encodingjson", func(b *testing.B) {
			b.SetBytes(int64(len(p.text)))
			b.ReportAllocs()
			for b.Loop() {
				var v string
				if err := json.Unmarshal(p.text, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
