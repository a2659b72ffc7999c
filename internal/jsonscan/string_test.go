package jsonscan_test

import (
	"encoding/json"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

var bodies = []string{
	``, `a`, `plain ascii`, `é`, `日本語`, `😀`, `\n`, `\"\\\/\b\f\n\r\t`, `a\nb`, `\u0041`, `\u00e9`, `\u65e5\u672c`, `\uFFFF`, `\u0000`,
	`\ud83d\ude00`, `\uD83D\uDE00x`, `\ud83d`, `\ude00`, `\ud83d\ud83d\ude00`, `\ud83dx`, `\ud83d\n`, `\ud83d\u0041`, `\ude00\ud83d`,
	"\xff", "a\xffb", "\xe4\xb8", "\xe4\xb8\\n", "\xed\xa0\x80", "é\xff\\u00e9\xc3", "\xf0\x9f\x98\x80", "\xf4\x90\x80\x80", "\xc0\x80",
	strings.Repeat("x", 1000) + `\n` + strings.Repeat("é", 1000), strings.Repeat(`\u4e2d`, 1000), strings.Repeat("\xff", 100),
}

func requireSameString(t *testing.T, text []byte) {
	t.Helper()
	var want string
	wantErr := json.Unmarshal(text, &want)
	s := jsonscan.New(text)
	str := s.String()
	err := s.End()
	if string(text) == "null" {
		require.Error(t, err)
		return
	}
	require.Equal(t, wantErr == nil, err == nil, "%q: %v", text, err)
	if err != nil {
		return
	}
	require.Equal(t, want, str.Decode(), "%q", text)
	require.True(t, str.Is(want))
	require.False(t, str.Is(want+"x"))
	if str.Plain() {
		require.Equal(t, want, string(str.Body))
	}
}

func TestDecodeAgreesWithEncodingJSON(t *testing.T) {
	for _, body := range bodies {
		requireSameString(t, []byte(`"`+body+`"`))
	}
}

func TestEveryByteAtEveryPlaceOfAWordIsSeen(t *testing.T) {
	for _, length := range []int{1, 7, 8, 9, 16, 17} {
		for at := range length {
			for c := range 256 {
				body := []byte(strings.Repeat("z", length))
				body[at] = byte(c)
				requireSameString(t, []byte(`"`+string(body)+`"`))
				body[0] = 0xff
				requireSameString(t, []byte(`"`+string(body)+`"`))
			}
		}
	}
}

func TestAStringIsPlainWhateverComesBehindIt(t *testing.T) {
	for _, text := range []string{`["a","é"]`, "[\"a\",\"\xff\xff\xff\xff\"]", `["a","\n"]`, `["12345678","é"]`} {
		s := jsonscan.New([]byte(text))
		s.Enter('[')
		s.Elem()
		require.True(t, s.String().Plain(), text)
		s.Elem()
		require.False(t, s.String().Plain(), text)
	}
}

func TestRandomBytesDecodeAsInEncodingJSON(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", "bc", `\n`, `\"`, `\u00e9`, `\ud83d`, `\ude00`, "é", "日", "\xff", "\xe4", "\x80", "z        z"}
	for range 5000 {
		var b strings.Builder
		for range rnd.IntN(30) {
			b.WriteString(alphabet[rnd.IntN(len(alphabet))])
		}
		requireSameString(t, []byte(`"`+b.String()+`"`))
	}
}

func TestDecodeAllocatesOnce(t *testing.T) {
	for _, body := range []string{strings.Repeat("x", 5000), strings.Repeat("é", 5000), strings.Repeat(`some text\n`, 500), strings.Repeat(`é\n`, 500)} {
		text := []byte(`"` + body + `"`)
		require.LessOrEqual(t, testing.AllocsPerRun(50, func() {
			s := jsonscan.New(text)
			_ = s.String().Decode()
		}), 1.0)
	}
}

func TestADecodedStringKeepsLittleMoreThanItsLengthAlive(t *testing.T) {
	text := []byte(`"` + strings.Repeat(`\u4e2d`, 100_000) + `"`)
	var kept []string
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 10 {
		s := jsonscan.New(text)
		str := s.String()
		kept = append(kept, str.Decode())
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int(after.HeapAlloc)-int(before.HeapAlloc), 10*400_000, "each has 300 000 bytes, its JSON 600 000")
	runtime.KeepAlive(kept)
}

func FuzzUnquote(f *testing.F) {
	for _, body := range bodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		requireSameString(t, append(append([]byte{'"'}, body...), '"'))
		requireSameString(t, body)
	})
}
