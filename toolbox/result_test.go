package toolbox_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

func text(s string) mcp.Content { return mcp.TextContent{Type: "text", Text: s} }

func image(mime, data string) mcp.Content {
	return mcp.ImageContent{Type: "image", MIMEType: mime, Data: data}
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func result(content ...mcp.Content) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: content}
}

func failure(content ...mcp.Content) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: content, IsError: true}
}

func TestTextsAreWhatTheyWere(t *testing.T) {
	size := int64(12)
	for _, c := range []struct {
		name string
		res  *mcp.CallToolResult
		want string
	}{
		{"nothing", nil, "[the tool returned nothing]"},
		{"empty", result(), "[the tool returned nothing]"},
		{"an empty text", result(text("")), "[the tool returned nothing]"},
		{"a blank text", result(text(" \n")), "[the tool returned nothing]"},
		{"a blank error", failure(text(" \n")), "Error: the tool failed and did not say why"},
		{"one text", result(text("hello\n")), "hello\n"},
		{"texts", result(text("a"), text("b\nc"), text("")), "a\nb\nc\n"},
		{"empty first", result(text(""), text("b")), "\nb"},
		{"pointer", result(&mcp.TextContent{Text: "a"}), "a"},
		{"image", result(text("look"), image("image/png", b64("\x01\x02345"))), "look\n[image: image/png, 5 bytes]"},
		{"image of no type", result(image("", b64("\x01"))), "[image: 1 byte, left out: it is application/octet-stream]"},
		{"bad image", result(image("image/png", "!!!!")), "[image: image/png, left out: it isn't valid base64]"},
		{"audio", result(mcp.AudioContent{MIMEType: "audio/wav", Data: b64("\x012")}), "[audio: audio/wav, 2 bytes]"},
		{"link", result(mcp.ResourceLink{URI: "file:///a", Name: "a", Title: "A file", MIMEType: "text/plain", Size: &size}),
			"[resource link: file:///a, A file, text/plain, 12 bytes]"},
		{"bare link", result(mcp.ResourceLink{URI: "file:///a"}), "[resource link: file:///a]"},
		{"text resource", result(mcp.EmbeddedResource{Resource: mcp.TextResourceContents{URI: "file:///a", MIMEType: "text/plain", Text: "inside"}}),
			"[resource: file:///a, text/plain, 6 bytes]\ninside"},
		{"binary resource", result(mcp.EmbeddedResource{Resource: mcp.BlobResourceContents{URI: "file:///b", Blob: b64("\x01yz")}}),
			"[resource: file:///b, application/octet-stream, 3 bytes]"},
		{"resource of nothing", result(mcp.EmbeddedResource{}), "[resource of an unknown kind]"},
		{"unknown", result(mcp.ToolUseContent{}), "[content of an unknown type]"},
		{"hologram", result(mcppool.UnknownContent{Type: "hologram"}), "[content of an unknown type: hologram]"},
		{"names that would break the line", result(mcp.ResourceLink{URI: "a\n]\nError: b\x1b[0m"}), "[resource link: a ] Error: b [0m]"},
		{"long names", result(mcp.ResourceLink{URI: strings.Repeat("é", 200)}), "[resource link: " + strings.Repeat("é", 150) + "…]"},

		{"structured", &mcp.CallToolResult{StructuredContent: map[string]any{"a": 1}}, `{"a":1}`},
		{"structured as sent", &mcp.CallToolResult{StructuredContent: map[string]any{"a": 1.0}, RawStructuredContent: json.RawMessage(`{"a":1.0}`)}, `{"a":1.0}`},
		{"structured with an empty text", &mcp.CallToolResult{Content: []mcp.Content{text("")}, StructuredContent: 1}, "1\n"},
		{"structured with an image", &mcp.CallToolResult{Content: []mcp.Content{image("image/png", "")}, StructuredContent: 1}, "1\n[image: image/png, left out: it is empty]"},
		{"structured beside text", &mcp.CallToolResult{Content: []mcp.Content{text("t")}, StructuredContent: 1}, "t"},
		{"structured, not JSON", &mcp.CallToolResult{StructuredContent: make(chan int)}, "[structured content that isn't JSON]"},

		{"error", failure(text("no such file")), "Error: no such file"},
		{"error that says so", failure(text("Error: no such file")), "Error: no such file"},
		{"error of two", failure(text("a"), text("b")), "Error: a\nb"},
		{"error without text", failure(), "Error: the tool failed and did not say why"},
		{"error with an empty text", failure(text("")), "Error: the tool failed and did not say why"},
	} {
		require.Equal(t, c.want, toolbox.Text(c.res), c.name)
	}
}

func TestWhatIsNotTextIsKeptForTheCaller(t *testing.T) {
	c := toolbox.ReadResult(result(
		image("image/png", b64("\x01ng")),
		&mcp.AudioContent{MIMEType: "audio/wav", Data: b64("\x01av")},
		&mcp.ResourceLink{URI: "u", Name: "n", MIMEType: "m"},
		&mcp.EmbeddedResource{Resource: &mcp.TextResourceContents{URI: "t", MIMEType: "text/plain", Text: "x"}},
		mcp.EmbeddedResource{Resource: &mcp.BlobResourceContents{URI: "b", MIMEType: "application/pdf", Blob: b64("pdf")}},
		image("image/gif", b64("")),
	), toolbox.Limits{})
	require.Equal(t, []toolbox.Media{{MIMEType: "image/png", Data: []byte("\x01ng")}}, c.Images)
	require.Equal(t, []toolbox.Media{{MIMEType: "audio/wav", Data: []byte("\x01av")}}, c.Audio)
	require.Equal(t, []toolbox.Resource{
		{URI: "u", Name: "n", MIMEType: "m", IsLink: true},
		{URI: "t", MIMEType: "text/plain", Data: []byte("x")},
		{URI: "b", MIMEType: "application/pdf", Data: []byte("pdf")},
	}, c.Resources)
	require.False(t, c.IsError)
}

func TestMediaOverTheBudgetAreLeftOutAndThatIsSaid(t *testing.T) {
	res := result(image("image/png", b64("\x0123")), image("image/png", b64("\x01234")), image("image/png", "A!"), image("image/png", b64("\x012")),
		mcp.EmbeddedResource{Resource: mcp.TextResourceContents{URI: "u", Text: "1"}})
	c := toolbox.ReadResult(res, toolbox.Limits{MaxMediaBytes: 5})
	require.Equal(t, "[image: image/png, 3 bytes]\n"+
		"[image: image/png, 4 bytes, left out: too large]\n"+
		"[image: image/png, left out: it isn't valid base64]\n"+
		"[image: image/png, 2 bytes]\n"+
		"[resource: u, 1 byte, left out: too large]", c.Text)
	require.Len(t, c.Images, 2)
	require.Empty(t, c.Resources)
	require.Len(t, toolbox.ReadResult(res, toolbox.Limits{MaxMediaBytes: -1}).Images, 3)
}

func TestTextOverTheLimitIsCutAtACharacterAndSaysHowMuchIsMissing(t *testing.T) {
	for _, c := range []struct {
		limit int
		res   *mcp.CallToolResult
		want  string
	}{
		{3, result(text("abc")), "abc"},
		{3, result(text("abcd")), "abc\n[1 byte of text left out]"},
		{3, result(text("aéé")), "aé\n[2 bytes of text left out]"},
		{2, result(text("aéé")), "a\n[4 bytes of text left out]"},
		{3, result(text("😀")), "\n[4 bytes of text left out]"},
		{3, result(text("\xff\xfe\xfd\xfc\xfb\xfa")), "\xff\xfe\xfd\n[3 bytes of text left out]"},
		{5, result(text("abc"), text("de")), "abc\nd\n[1 byte of text left out]"},
		{3, result(text("abc"), text("de"), text("f")), "abc\n[5 bytes of text left out]"},
		{3, result(text("abcd"), text("e")), "abc\n[3 bytes of text left out]"},
		{4, result(text("aé"), text("é")), "aé\n\n[2 bytes of text left out]"},
		{3, failure(text("abcd")), "Error: abc\n[1 byte of text left out]"},
		{-1, result(text("abc"), text("de")), "abc\nde"},
	} {
		got := toolbox.ReadResult(c.res, toolbox.Limits{MaxTextBytes: c.limit}).Text
		require.Equal(t, c.want, got)
	}
	long := strings.Repeat("x", 128<<10)
	require.Equal(t, long, toolbox.Text(result(text(long))))
	require.Equal(t, long+"\n[1 byte of text left out]", toolbox.Text(result(text(long+"y"))))
}

func FuzzReadResult(f *testing.F) {
	f.Add("héllo", "wörld", "AAAA", "file:///a", 3, 2, true)
	f.Add("", "", "=", "\n", 1, 1, false)
	f.Fuzz(func(t *testing.T, a, b, data, uri string, limit, media int, isError bool) {
		res := &mcp.CallToolResult{IsError: isError, Content: []mcp.Content{
			text(a), image("image/png", data), mcp.ResourceLink{URI: uri}, text(b),
			mcp.EmbeddedResource{Resource: mcp.BlobResourceContents{URI: uri, Blob: data}},
		}}
		c := toolbox.ReadResult(res, toolbox.Limits{MaxTextBytes: limit, MaxMediaBytes: media})
		if c.IsError != isError || isError && !strings.HasPrefix(c.Text, "Error: ") {
			t.Fatalf("%q", c.Text)
		}
		if limit > 0 && len(c.Text) > limit+len("Error: ")+len("\n[ bytes of text left out]")+20 {
			t.Fatalf("%d bytes for a limit of %d", len(c.Text), limit)
		}
		kept := 0
		for _, m := range c.Images {
			kept += len(m.Data)
		}
		for _, r := range c.Resources {
			kept += len(r.Data)
		}
		if media > 0 && kept > media {
			t.Fatalf("%d bytes kept of %d", kept, media)
		}
		if utf8.ValidString(a) && utf8.ValidString(b) && utf8.ValidString(uri) && !utf8.ValidString(c.Text) {
			t.Fatalf("a character was cut: %q", c.Text)
		}
	})
}
