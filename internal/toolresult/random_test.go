package toolresult_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// generator makes results out of the members that matter, each with likely and
// unlikely values, in any order, some twice, some spelled in another way.
type generator struct{ *rand.Rand }

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g generator) rarely() bool { return g.IntN(30) == 0 }

func (g generator) object(members ...func() (key, value string)) string {
	var b strings.Builder
	b.WriteString(g.pick("{", "{", "{", " { "))
	for i := range g.IntN(len(members) + 2) {
		if i > 0 {
			b.WriteByte(',')
		}
		key, value := members[g.IntN(len(members))]()
		b.WriteString(`"` + g.key(key) + `"` + g.pick(":", ":", " : ") + value)
	}
	b.WriteString("}")
	return b.String()
}

// prepend returns the object with members put in front of its own.
func prepend(members, object string) string {
	rest := strings.TrimSpace(object)[1:]
	if strings.TrimSpace(rest) == "}" {
		return "{" + members + "}"
	}
	return "{" + members + "," + rest
}

func (g generator) key(k string) string {
	if !g.rarely() {
		return k
	}
	return g.pick(strings.ToUpper(k), strings.Replace(k, "s", "ſ", 1), strings.Replace(k, "t", `\u0074`, 1), k+"x", k+"\xff", "")
}

func (g generator) str() string {
	if g.rarely() {
		return g.pick("null", "5", "{}", "[]", "true")
	}
	return `"` + g.pick("", "x", "plain text", `line\nline \"quoted\"`, "é日", `\u00e9\ud83d\ude00`, `\ud83d`, "\xff\xe4", "image/png", "image\\/png") + `"`
}

func (g generator) any(depth int) string {
	if depth > 3 || g.IntN(3) > 0 {
		return g.pick("null", "true", "false", "0", "-1.50", "12345678901234567890", "1e-400", `"a\n"`, `""`, "{}", "[]", "[ ]", "[1, 2]")
	}
	if g.IntN(2) == 0 {
		return "[" + g.any(depth+1) + "," + g.any(depth+1) + "]"
	}
	member := func() (string, string) { return g.pick("a", "b", `\u0061`, "progressToken"), g.any(depth + 1) }
	return g.object(member, member)
}

func (g generator) member(key string, value func() string) func() (string, string) {
	return func() (string, string) { return key, value() }
}

func (g generator) oneOf(values ...string) func() string {
	return func() string { return g.pick(values...) }
}

func (g generator) meta() string {
	if g.rarely() {
		return g.any(0)
	}
	return g.object(g.member("progressToken", g.oneOf(`"t"`, "7", "null")), g.member("other", func() string { return g.any(0) }))
}

func (g generator) resource() string {
	if g.rarely() {
		return g.any(0)
	}
	return prepend(`"uri":"file:///a"`+g.pick(`,"text":"t"`, `,"blob":"b"`, ""), g.object(
		g.member("uri", g.str), g.member("mimeType", g.str), g.member("text", g.str), g.member("blob", g.str), g.member("_meta", g.meta),
	))
}

func (g generator) block() string {
	if g.rarely() {
		return g.any(0)
	}
	members := g.object(
		g.member("text", g.str), g.member("data", g.str), g.member("mimeType", g.str), g.member("resource", g.resource), g.member("_meta", g.meta),
		g.member("uri", g.str), g.member("name", g.str), g.member("input", func() string { return g.any(0) }),
		g.member("annotations", g.oneOf(`{"priority":0.5}`, `{"audience":["user"]}`, `{"lastModified":"x","odd":1}`, "null", "{}")),
		g.member("type", g.oneOf(`"text"`, `"image"`, `"audio"`, `"te\u0078t"`)),
	)
	typ := g.pick("text", "text", "image", "audio", "resource", "resource_link", "tool_use")
	return prepend(`"type":"`+typ+`"`, members)
}

func (g generator) content() string {
	if g.rarely() {
		return "null"
	}
	blocks := make([]string, g.IntN(4))
	for i := range blocks {
		blocks[i] = g.block()
	}
	return "[" + strings.Join(blocks, " , ") + "]"
}

func (g generator) result() string {
	return g.object(
		g.member("content", g.content), g.member("content", g.content), g.member("content", g.content),
		g.member("isError", g.oneOf("true", "false", "null")),
		g.member("structuredContent", func() string { return g.any(0) }),
		g.member("_meta", g.meta),
		g.member("resultType", g.oneOf(`"complete"`, `"input_required"`, "null")),
		g.member("requestState", g.str),
		g.member("inputRequests", g.oneOf(`{"a":{"method":"roots/list"}}`, `{"b":{"method":"roots/list"}}`, "{}", "null")),
		g.member("ttlMs", func() string { return g.any(0) }),
	)
}

func TestDecodeEqualsMCPGoOnRandomResults(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(1, 2))}
	same, total := 0, 2000
	for range total {
		if requireSame(t, []byte(g.result())) {
			same++
		}
	}
	require.Greater(t, same, total/10, "results that mcp-go takes")
}
