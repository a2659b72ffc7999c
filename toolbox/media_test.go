package toolbox_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/toolbox"
)

const (
	pngBytes  = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	jpegBytes = "\xff\xd8\xff\xe0\x00\x10JFIF"
	oddBytes  = "\xfb\xff\xbe\x01" // whose base64 has + and /
)

func TestTheTypeOfAnImageIsThatOfItsBytes(t *testing.T) {
	for _, c := range []struct{ declared, data, want string }{
		{"image/png", jpegBytes, "image/jpeg"},
		{"", pngBytes, "image/png"},
		{"image/jpg", jpegBytes, "image/jpeg"},
		{"application/octet-stream", "GIF89a\x01", "image/gif"},
		{"image/jpeg", "RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"},
		{"image/tiff", "\x01\x02", "image/tiff"},
		{"Image/TIFF; x=y", "\x01\x02", "image/tiff"},
		{"", "\x00\x00\x00\x1cftypavif\x00\x00", "image/avif"},
		{"image/png", "\x00\x00\x00\x1cftypheic\x00\x00", "image/heic"},
		{"image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg"/>`, "image/svg+xml"},
		{"", `<?xml version="1.0"?><svg/>`, "image/svg+xml"},
	} {
		got := toolbox.ReadResult(result(image(c.declared, b64(c.data))), toolbox.Limits{})
		require.Equal(t, []toolbox.Media{{MIMEType: c.want, Data: []byte(c.data)}}, got.Images, "%q", c.declared)
		require.Contains(t, got.Text, "[image: "+c.want+", ")
	}
	for declared, want := range map[string]string{"audio/wav": "audio/wav", "": "audio/wav", "audio/mpeg": "audio/wav"} {
		got := toolbox.ReadResult(result(mcp.AudioContent{MIMEType: declared, Data: b64("RIFF\x00\x00\x00\x00WAVEfmt ")}), toolbox.Limits{})
		require.Equal(t, want, got.Audio[0].MIMEType)
	}
}

func TestWhatIsNoImageIsLeftOutAndThatIsSaid(t *testing.T) {
	for data, note := range map[string]string{
		"":                            "left out: it is empty",
		"====":                        "left out: it is empty",
		"  \n":                        "left out: it is empty",
		"!":                           "left out: it isn't valid base64",
		b64("<html>no such page"):     "18 bytes, left out: it is text/html",
		"data:text/plain,not%20found": "9 bytes, left out: it is text/plain",
	} {
		got := toolbox.ReadResult(result(image("image/png", data)), toolbox.Limits{MaxMediaBytes: 20})
		require.Empty(t, got.Images, data)
		require.Equal(t, "[image: image/png, "+note+"]", got.Text, data)
	}
}

func TestTheUsualSpellingsOfBase64AreRead(t *testing.T) {
	plain := base64.StdEncoding.EncodeToString([]byte(oddBytes))
	for _, data := range []string{
		plain,
		strings.TrimRight(plain, "="),
		base64.URLEncoding.EncodeToString([]byte(oddBytes)),
		base64.RawURLEncoding.EncodeToString([]byte(oddBytes)),
		plain[:3] + "\r\n " + plain[3:],
		"data:image/x-odd;base64," + plain,
		"DATA:image/x-odd;charset=x;base64," + plain,
	} {
		got := toolbox.ReadResult(result(image("image/x-odd", data)), toolbox.Limits{MaxMediaBytes: 12})
		require.Equal(t, []toolbox.Media{{MIMEType: "image/x-odd", Data: []byte(oddBytes)}}, got.Images, data)
	}
	got := toolbox.ReadResult(result(image("", "data:image/x-odd;base64,"+plain)), toolbox.Limits{})
	require.Equal(t, "image/x-odd", got.Images[0].MIMEType)
}

func TestALargeImageIsScaledByTheCallersFunc(t *testing.T) {
	big := pngBytes + strings.Repeat("\x00", 100)
	var asked []int
	limits := toolbox.Limits{MaxImageBytes: 50, MaxMediaBytes: 200, Scale: func(m toolbox.Media, limit int) (toolbox.Media, error) {
		asked = append(asked, len(m.Data), limit)
		return toolbox.Media{MIMEType: "image/png", Data: []byte(jpegBytes)}, nil
	}}
	got := toolbox.ReadResult(result(image("image/png", b64(big)), image("image/png", b64(pngBytes))), limits)
	require.Equal(t, []int{len(big), 50}, asked)
	require.Equal(t, []toolbox.Media{{MIMEType: "image/jpeg", Data: []byte(jpegBytes)}, {MIMEType: "image/png", Data: []byte(pngBytes)}}, got.Images)
	require.Equal(t, "[image: image/jpeg, 10 bytes, scaled down from 116 bytes]\n[image: image/png, 16 bytes]", got.Text)

	limits.Scale = nil
	require.Equal(t, "[image: image/png, 116 bytes, left out: too large]", toolbox.ReadResult(result(image("", b64(big))), limits).Text)
	for _, scale := range []func(toolbox.Media, int) (toolbox.Media, error){
		func(m toolbox.Media, _ int) (toolbox.Media, error) { return m, nil },
		func(toolbox.Media, int) (toolbox.Media, error) { return toolbox.Media{}, nil },
		func(m toolbox.Media, _ int) (toolbox.Media, error) { return m, errors.New("no") },
	} {
		limits.Scale = scale
		got := toolbox.ReadResult(result(image("", b64(big))), limits)
		require.Empty(t, got.Images)
		require.Equal(t, "[image: image/png, 116 bytes, left out: too large, and can't be scaled]", got.Text)
	}
}

func FuzzMedia(f *testing.F) {
	f.Add("image/png", "data:image/png;base64,AAEC", "text", 3)
	f.Add("", "_-=\n", "", -1)
	f.Fuzz(func(t *testing.T, mimeType, data, text string, limit int) {
		res := result(image(mimeType, data), mcp.AudioContent{MIMEType: mimeType, Data: data}, mcp.TextContent{Text: text})
		got := toolbox.ReadResult(res, toolbox.Limits{MaxMediaBytes: limit, MaxImageBytes: limit})
		require.NotEmpty(t, strings.TrimSpace(got.Text))
		kept := 0
		for _, m := range append(got.Images, got.Audio...) {
			require.NotEmpty(t, m.Data)
			require.NotEmpty(t, m.MIMEType)
			kept += len(m.Data)
		}
		if limit > 0 {
			require.LessOrEqual(t, kept, limit)
		}
	})
}
