package toolbox

import (
	"encoding/json"
	"net/http"
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
	// MaxImageBytes bounds each image, decoded, in bytes; default no limit. Model APIs
	// have such limits, of about 5 MB. A larger image goes to Scale, or is left out.
	MaxImageBytes int
	// Scale makes an image smaller, so that its data has at most that many bytes; the
	// image isn't used on. It may be called from several goroutines at once. With an
	// error the image is left out.
	Scale func(image Media, maxBytes int) (Media, error)
}

const (
	defaultMaxTextBytes  = 128 << 10
	defaultMaxMediaBytes = 16 << 20
)

func (l Limits) maxTextBytes() int  { return orDefault(l.MaxTextBytes, defaultMaxTextBytes) }
func (l Limits) maxImageBytes() int { return orDefault(l.MaxImageBytes, -1) }
func (l Limits) maxMediaBytes() int { return orDefault(l.MaxMediaBytes, defaultMaxMediaBytes) }

// Content is a tool's result, sorted by who it is for.
type Content struct {
	// Text is for the model: the text blocks joined by newlines, with a line in
	// brackets for whatever isn't text; the structured content as JSON when
	// there is no text. It begins with "Error: " when the call failed. It is never empty
	// or blank, which model APIs refuse.
	Text string
	// IsError says that the tool, or the call, failed.
	IsError bool

	Images    []Media
	Audio     []Media
	Resources []Resource
}

// Media is an image or a sound.
type Media struct {
	MIMEType string // as the bytes say, or else the server; "image/..." or "audio/..."
	Data     []byte // decoded; never empty
}

// Resource is an embedded resource, or a link to one.
type Resource struct {
	URI      string
	Name     string // of a link
	MIMEType string // as the server says, or as the contents look; may be empty
	Data     []byte // the contents, text or binary; nil for a link
	IsLink   bool   // the contents have to be fetched
}

// Text is the text of a result for the model, with the default [Limits].
func Text(res *mcp.CallToolResult) string { return ReadResult(res, Limits{}).Text }

// ReadResult sorts a result. The result isn't kept or changed.
func ReadResult(res *mcp.CallToolResult, limits Limits) Content {
	if res == nil {
		return Content{Text: nothing}
	}
	r := reader{limits: limits, budget: budget(limits.maxMediaBytes())}
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
	out    Content
	text   limitedText
	limits Limits
	budget budget // of media
}

func (r *reader) block(c mcp.Content) {
	switch c := c.(type) {
	case mcp.TextContent:
		r.text.line(c.Text)
	case *mcp.TextContent:
		r.text.line(c.Text)
	case mcp.ImageContent:
		r.media(blob{"image", c.MIMEType, c.Data}, &r.out.Images)
	case *mcp.ImageContent:
		r.media(blob{"image", c.MIMEType, c.Data}, &r.out.Images)
	case mcp.AudioContent:
		r.media(blob{"audio", c.MIMEType, c.Data}, &r.out.Audio)
	case *mcp.AudioContent:
		r.media(blob{"audio", c.MIMEType, c.Data}, &r.out.Audio)
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
		note, fits := r.budget.take(len(c.Text))
		r.text.line(named("resource", c.URI, c.MIMEType, note))
		if fits {
			// Servers embed what the model asked to read, so it gets to read it.
			r.text.line(c.Text)
			r.out.Resources = append(r.out.Resources, Resource{URI: c.URI, MIMEType: c.MIMEType, Data: []byte(c.Text)})
		}
	case mcp.BlobResourceContents:
		b, note := r.decode(c.Blob)
		mimeType := c.MIMEType
		if mimeType == "" && b != nil {
			mimeType = http.DetectContentType(b)
		}
		r.text.line(named("resource", c.URI, mimeType, note))
		if b != nil {
			r.out.Resources = append(r.out.Resources, Resource{URI: c.URI, MIMEType: mimeType, Data: b})
		}
	default:
		r.text.line("[resource of an unknown kind]")
	}
}

// budget is how many bytes of media may still be kept; negative means no limit.
type budget int

// take asks for n bytes.
func (b *budget) take(n int) (note string, ok bool) {
	if *b < 0 {
		return byteCount(n), true
	}
	if n > int(*b) {
		return byteCount(n) + ", left out: too large", false
	}
	*b -= budget(n)
	return byteCount(n), true
}

func (b *budget) giveBack(n int) {
	if *b >= 0 {
		*b += budget(n)
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

// nothing stands for a result without a text.
const nothing = "[the tool returned nothing]"

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
		case strings.TrimSpace(text) == "" && t.over == 0:
			text = errorPrefix + "the tool failed and did not say why"
		case !strings.HasPrefix(text, errorPrefix):
			text = errorPrefix + text
		}
	}
	if strings.TrimSpace(text) == "" && t.over == 0 {
		text = nothing
	}
	if t.over > 0 {
		text += "\n[" + byteCount(t.over) + " of text left out]"
	}
	return text
}
