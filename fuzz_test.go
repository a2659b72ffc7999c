package mcppool_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcppool/mcppool"
)

// serverFrom makes a server of a text: fields separated by \x01, their parts by
// \x02, names and values by \x03.
func serverFrom(text string) mcppool.Server {
	fields := strings.SplitN(text+"\x01\x01\x01\x01\x01", "\x01", 6)
	list := func(f string) []string {
		if f == "" {
			return nil
		}
		return strings.Split(f, "\x02")
	}
	pairs := func(f string) map[string]string {
		m := map[string]string{}
		for _, p := range list(f) {
			name, value, _ := strings.Cut(p, "\x03")
			m[name] = value
		}
		return m
	}
	return mcppool.Server{
		Command: fields[0], Args: list(fields[1]), Env: pairs(fields[2]), Dir: fields[3],
		URL: fields[4], Header: pairs(strings.TrimRight(fields[5], "\x01")),
	}
}

func FuzzKeyEncoding(f *testing.F) {
	f.Add("x\x01a b", "x\x01a\x02b")
	f.Add("x\x01\x01A\x031\x02B\x032", "x\x01\x01B\x032\x02A\x031")
	f.Add("xa", "x\x01a")
	f.Add("x\x01ab\x02c", "x\x01a\x02bc")
	f.Add("x\x01\x01A\x03BC", "x\x01\x01AB\x03C")
	f.Add("x\x01\x01\x01d", "x\x01\x01d")
	f.Fuzz(func(t *testing.T, a, b string) {
		s, u := serverFrom(a), serverFrom(b)
		same := s.Command == u.Command && slices.Equal(s.Args, u.Args) && maps.Equal(s.Env, u.Env) &&
			s.Dir == u.Dir && s.URL == u.URL && maps.Equal(s.Header, u.Header)
		if s.Equal(u) != same {
			t.Fatalf("Equal: %v, servers equal: %v\n%#v\n%#v", !same, same, s, u)
		}
		if equal := mcppool.Encoding(s) == mcppool.Encoding(u); equal != same {
			t.Fatalf("encodings equal: %v, servers equal: %v\n%#v\n%#v", equal, same, s, u)
		}
	})
}

func FuzzParseCommand(f *testing.F) {
	for _, line := range []string{`npx -y pkg 'a b'`, `a "b\"c" \d`, `'`, `"`, `\`, "a\\\nb", ""} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		s, err := mcppool.ParseCommand(line)
		if err != nil {
			return
		}
		if s.Command == "" {
			t.Fatal("no command and no error")
		}
		// Quoted again, the words are the same ones.
		var quoted []string
		for _, w := range append([]string{s.Command}, s.Args...) {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		again, err := mcppool.ParseCommand(strings.Join(quoted, " "))
		if err != nil || again.Command != s.Command || !slices.Equal(again.Args, s.Args) {
			t.Fatalf("%q parses to %q, which quoted parses to %q (%v)", line, s, again, err)
		}
	})
}
