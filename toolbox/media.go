package toolbox

import (
	"encoding/base64"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// blob is what a block of an image or a sound holds.
type blob struct {
	kind     string // "image" or "audio", which its type begins with
	mimeType string // as the server says
	data     string
}

// media adds an image or a sound to a list, and says so in the text.
func (r *reader) media(b blob, to *[]Media) {
	data, declared := b.data, b.mimeType
	if isDataURL(data) {
		var of string
		of, data = splitDataURL(data)
		if declared == "" {
			declared = of
		}
	}
	bytes, note := r.decode(data)
	if bytes == nil {
		r.text.line(named(b.kind, declared, note))
		return
	}
	m := Media{MIMEType: typeOf(b.kind, declared, bytes), Data: bytes}
	switch {
	case !strings.HasPrefix(m.MIMEType, b.kind+"/"):
		r.budget.giveBack(len(bytes))
		r.text.line(named(b.kind, declared, byteCount(len(bytes))+", left out: it is "+m.MIMEType))
		return
	case b.kind == "image":
		var ok bool
		if m, note, ok = r.scaled(m, note); !ok {
			r.text.line(named(b.kind, m.MIMEType, note))
			return
		}
	}
	r.text.line(named(b.kind, m.MIMEType, note))
	*to = append(*to, m)
}

// scaled returns an image that is no larger than it may be; ok is false for one that is
// left out. The budget has what is kept.
func (r *reader) scaled(m Media, note string) (_ Media, _ string, ok bool) {
	limit, size := r.limits.maxImageBytes(), len(m.Data)
	if limit < 0 || size <= limit {
		return m, note, true
	}
	r.budget.giveBack(size)
	if r.limits.Scale == nil {
		return m, byteCount(size) + ", left out: too large", false
	}
	small, err := r.limits.Scale(m, limit)
	if err != nil || len(small.Data) == 0 || len(small.Data) > limit {
		return m, byteCount(size) + ", left out: too large, and can't be scaled", false
	}
	note, ok = r.budget.take(len(small.Data))
	small.MIMEType = typeOf("image", small.MIMEType, small.Data)
	return small, note + ", scaled down from " + byteCount(size), ok
}

// decode returns the bytes of base64 text, nil when they are left out, and what to say of
// them. The budget is asked before anything is allocated.
func (r *reader) decode(data string) (b []byte, note string) {
	size := base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(data, "=")))
	if note, fits := r.budget.take(size); !fits {
		return nil, note
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		b, err = base64.RawStdEncoding.DecodeString(plainBase64(data))
	}
	r.budget.giveBack(size - len(b)) // line breaks, or all
	switch {
	case err != nil:
		r.budget.giveBack(len(b))
		return nil, "left out: it isn't valid base64"
	case len(b) == 0:
		return nil, "left out: it is empty"
	}
	return b, byteCount(len(b))
}

// plainBase64 reads the spellings of base64 that are about: the alphabet for URLs, blanks
// within, and padding or none.
func plainBase64(s string) string {
	return strings.Map(func(c rune) rune {
		switch c {
		case '-':
			return '+'
		case '_':
			return '/'
		case ' ', '\t', '\r', '\n', '=':
			return -1
		default:
			return c
		}
	}, s)
}

func isDataURL(s string) bool { return len(s) > 5 && strings.EqualFold(s[:5], "data:") }

// splitDataURL returns the type of a data: URL and its data as base64.
func splitDataURL(s string) (mimeType, data string) {
	head, data, _ := strings.Cut(s[len("data:"):], ",")
	mimeType, encoded := strings.CutSuffix(head, ";base64")
	if !encoded {
		if plain, err := url.PathUnescape(data); err == nil {
			data = plain
		}
		data = base64.StdEncoding.EncodeToString([]byte(data))
	}
	mimeType, _, _ = strings.Cut(mimeType, ";")
	return mimeType, data
}

// typeOf is the type of an image or a sound. What the bytes say counts more than what the
// server does; where they say nothing the server is believed.
func typeOf(kind, declared string, data []byte) string {
	found, _, _ := mime.ParseMediaType(http.DetectContentType(data)) // it is always valid
	switch found {
	case "audio/wave":
		found = "audio/wav"
	case "application/ogg":
		found = kind + "/ogg"
	case "video/mp4", "application/octet-stream":
		found = ofBrand(data)
	}
	plain := strings.ToLower(strings.TrimSpace(strings.Split(declared, ";")[0]))
	switch {
	case strings.HasPrefix(found, kind+"/"):
		return found
	case found == "" && strings.HasPrefix(plain, kind+"/"):
		return plain
	case found == "":
		return "application/octet-stream"
	case kind == "image" && strings.HasPrefix(found, "text/") && isSVG(data):
		return "image/svg+xml"
	case kind == "audio" && strings.HasPrefix(plain, "audio/") && !strings.HasPrefix(found, "text/") && !strings.HasPrefix(found, "image/"):
		return plain // such as video/webm, which holds sounds too
	default:
		return found
	}
}

// ofBrand knows what the standard library doesn't of the files that begin with "ftyp";
// empty means that nothing is known.
func ofBrand(data []byte) string {
	if len(data) < 12 || string(data[4:8]) != "ftyp" {
		return ""
	}
	switch string(data[8:12]) {
	case "avif", "avis":
		return "image/avif"
	case "heic", "heix", "mif1", "msf1":
		return "image/heic"
	case "M4A ", "M4B ":
		return "audio/mp4"
	default:
		return "video/mp4"
	}
}

func isSVG(data []byte) bool {
	return strings.Contains(string(data[:min(len(data), 1024)]), "<svg")
}
