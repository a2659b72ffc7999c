package toolbox

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// Limits bound what is kept of a result. Zero means the default given with it,
// a negative value no limit.
type Limits struct {
	// MaxTextBytes bounds the text for the model, in bytes; default 128 KiB.
	// What is beyond is cut off at a character's boundary, and the text says how
	// much is missing.
	MaxTextBytes int
	// MaxMediaBytes bounds the images, audio and resources of one result
	// together, decoded, in bytes; default 16 MiB. What doesn't fit is left
	// out, and the text says so.
	MaxMediaBytes int
}

const (
	defaultMaxTextBytes  = 128 << 10
	defaultMaxMediaBytes = 16 << 20
)

func (l Limits) maxTextBytes() int  { return orDefault(l.MaxTextBytes, defaultMaxTextBytes) }
func (l Limits) maxMediaBytes() int { return orDefault(l.MaxMediaBytes, defaultMaxMediaBytes) }

// Content is a tool's result, sorted by who it is for.
type Content struct {
	// Text is for the model: the text blocks joined by newlines, with a line in
	// brackets for whatever isn't text; the structured content as JSON when
	// there is no text. It begins with "Error: " when the call failed.
	Text string
	// IsError says that the tool, or the call, failed.
	IsError bool

	Images    []Media
	Audio     []Media
	Resources []Resource
}

// Media is an image or a sound.
type Media struct {
	MIMEType string // as the server says
	Data     []byte // decoded
}

// Resource is an embedded resource, or a link to one.
type Resource struct {
	URI      string
	Name     string // of a link
	MIMEType string // as the server says; may be empty
	Data     []byte // the contents, text or binary; nil for a link
	IsLink   bool   // the contents have to be fetched
}

// Text is the text of a result for the model, with the default [Limits].
func Text(res *mcp.CallToolResult) string { return ReadResult(res, Limits{}).Text }

// ReadResult sorts a result. The result isn't kept or changed.
func ReadResult(res *mcp.CallToolResult, limits Limits) Content {
	if res == nil {
		return Content{}
	}
	r := reader{media: limits.maxMediaBytes()}
	r.text.limit = limits.maxTextBytes()
	r.out.IsError = res.IsError
	if !hasText(res) {
		if s := structured(res); s != "" {
			r.text.line(s)
		}
	}
	for _, c := range res.Content {
		r.block(c)
	}
	r.out.Text = r.text.finish(res.IsError)
	return r.out
}

func hasText(res *mcp.CallToolResult) bool {
	for _, c := range res.Content {
		switch c := c.(type) {
		case mcp.TextContent:
			if c.Text != "" {
				return true
			}
		case *mcp.TextContent:
			if c.Text != "" {
				return true
			}
		}
	}
	return false
}

func structured(res *mcp.CallToolResult) string {
	if len(res.RawStructuredContent) > 0 {
		return string(res.RawStructuredContent)
	}
	if res.StructuredContent == nil {
		return ""
	}
	b, err := json.Marshal(res.StructuredContent)
	if err != nil {
		return "[structured content that isn't JSON]"
	}
	return string(b)
}

// reader goes through the blocks of one result.
type reader struct {
	out   Content
	text  limitedText
	media int // bytes left; negative means no limit
}

func (r *reader) block(c mcp.Content) {
	switch c := c.(type) {
	case mcp.TextContent:
		r.text.line(c.Text)
	case *mcp.TextContent:
		r.text.line(c.Text)
	case mcp.ImageContent:
		r.blob("image", c.MIMEType, c.Data, &r.out.Images)
	case *mcp.ImageContent:
		r.blob("image", c.MIMEType, c.Data, &r.out.Images)
	case mcp.AudioContent:
		r.blob("audio", c.MIMEType, c.Data, &r.out.Audio)
	case *mcp.AudioContent:
		r.blob("audio", c.MIMEType, c.Data, &r.out.Audio)
	case mcp.ResourceLink:
		r.link(&c)
	case *mcp.ResourceLink:
		r.link(c)
	case mcp.EmbeddedResource:
		r.resource(c.Resource)
	case *mcp.EmbeddedResource:
		r.resource(c.Resource)
	case mcppool.UnknownContent:
		r.text.line(named("content of an unknown type", c.Type))
	default:
		r.text.line("[content of an unknown type]")
	}
}

func (r *reader) blob(kind, mimeType, data string, to *[]Media) {
	b, note := r.decode(data)
	r.text.line(named(kind, mimeType, note))
	if b != nil {
		*to = append(*to, Media{MIMEType: mimeType, Data: b})
	}
}

func (r *reader) link(l *mcp.ResourceLink) {
	size := ""
	if l.Size != nil {
		size = byteCount(int(*l.Size))
	}
	name := l.Name
	if l.Title != "" {
		name = l.Title
	}
	r.text.line(named("resource link", l.URI, name, l.MIMEType, size))
	r.out.Resources = append(r.out.Resources, Resource{URI: l.URI, Name: l.Name, MIMEType: l.MIMEType, IsLink: true})
}

func (r *reader) resource(c mcp.ResourceContents) {
	switch c := c.(type) {
	case *mcp.TextResourceContents:
		r.resource(*c)
	case *mcp.BlobResourceContents:
		r.resource(*c)
	case mcp.TextResourceContents:
		note, fits := r.take(len(c.Text))
		r.text.line(named("resource", c.URI, c.MIMEType, note))
		if fits {
			// Servers embed what the model asked to read, so it gets to read it.
			r.text.line(c.Text)
			r.out.Resources = append(r.out.Resources, Resource{URI: c.URI, MIMEType: c.MIMEType, Data: []byte(c.Text)})
		}
	case mcp.BlobResourceContents:
		b, note := r.decode(c.Blob)
		r.text.line(named("resource", c.URI, c.MIMEType, note))
		if b != nil {
			r.out.Resources = append(r.out.Resources, Resource{URI: c.URI, MIMEType: c.MIMEType, Data: b})
		}
	default:
		r.text.line("[resource of an unknown kind]")
	}
}

// decode gives the bytes of base64 text, nil when they are left out, and what
// to say of them. The budget is asked before anything is allocated.
func (r *reader) decode(data string) (b []byte, note string) {
	size := base64.StdEncoding.DecodedLen(len(data)) - strings.Count(data[max(0, len(data)-2):], "=")
	if note, fits := r.take(size); !fits {
		return nil, note
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		r.giveBack(size)
		return nil, "left out: it isn't valid base64"
	}
	r.giveBack(size - len(b)) // line breaks
	return b, byteCount(len(b))
}

// take asks for n bytes of the budget.
func (r *reader) take(n int) (note string, ok bool) {
	if r.media < 0 {
		return byteCount(n), true
	}
	if n > r.media {
		return byteCount(n) + ", left out: too large", false
	}
	r.media -= n
	return byteCount(n), true
}

func (r *reader) giveBack(n int) {
	if r.media >= 0 {
		r.media += n
	}
}

func byteCount(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return strconv.Itoa(n) + " bytes"
}

// named is the line that stands for what isn't text.
func named(kind string, parts ...string) string {
	b := []byte("[" + kind)
	sep := ": "
	for _, p := range parts {
		if p != "" {
			b = append(append(b, sep...), oneLine(p, maxNamed)...)
			sep = ", "
		}
	}
	return string(append(b, ']'))
}

// maxNamed bounds, in bytes, what a server's names take up in a text of ours.
const maxNamed = 300

// oneLine makes a text that somebody else wrote fit into a line of ours.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
	if len(s) > limit {
		return cut(s, limit) + "…"
	}
	return s
}

// cut is the longest prefix of at most n bytes that ends with a whole
// character.
func cut(s string, n int) string {
	if n >= len(s) {
		return s
	}
	n = max(n, 0)
	for i := n; i >= 0 && i > n-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	return s[:n] // not UTF-8 anyway
}

const errorPrefix = "Error: "

// limitedText joins lines and never holds more than its limit of them.
type limitedText struct {
	limit int // bytes; negative means none
	any   bool
	only  string // the first line, as long as there is no other one
	b     strings.Builder
	over  int // bytes left out
}

func (t *limitedText) line(s string) {
	if !t.any {
		t.any, t.only = true, s
		return
	}
	if t.b.Len() == 0 && t.over == 0 {
		t.write(t.only)
	}
	t.write("\n")
	t.write(s)
}

func (t *limitedText) write(s string) {
	kept := s
	if t.limit >= 0 {
		kept = ""
		if t.over == 0 {
			kept = cut(s, t.limit-t.b.Len())
		}
	}
	t.b.WriteString(kept)
	t.over += len(s) - len(kept)
}

// finish is the whole text. That of a failed call says so in its first word.
func (t *limitedText) finish(failed bool) string {
	text := t.only
	if t.b.Len() > 0 || t.over > 0 {
		text = t.b.String()
	} else if t.limit >= 0 && len(text) > t.limit {
		text = cut(text, t.limit)
		t.over = len(t.only) - len(text)
	}
	if failed {
		switch {
		case text == "" && t.over == 0:
			text = errorPrefix + "the tool failed and did not say why"
		case !strings.HasPrefix(text, errorPrefix):
			text = errorPrefix + text
		}
	}
	if t.over > 0 {
		text += "\n[" + byteCount(t.over) + " of text left out]"
	}
	return text
}
