package photo

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"vksplat/scene"
	"vksplat/scene/scenetest"
)

// The references are what libwebp 1.6 makes of the files.
func TestWebPAgainstLibwebp(t *testing.T) { compareReferences(t, "*.webp", 4) }

func TestWebPRefuses(t *testing.T) {
	lossy, alpha, lossless := readTestdata(t, "lossy.webp"), readTestdata(t, "lossyalpha.webp"),
		readTestdata(t, "losslessalpha.webp")
	changed := func(data []byte, offset int, values ...byte) []byte {
		data = bytes.Clone(data)
		copy(data[offset:], values)
		return data
	}
	picture := bytes.Index(alpha, []byte("VP8 ")) + 8
	for what, c := range map[string]struct {
		data []byte
		want string
	}{
		"animation":     {readTestdata(t, "animated.webp"), "animation"},
		"no chunk":      {lossy[:riffHeader], "header is invalid"},
		"other chunk":   {changed(lossy, riffHeader, 'J'), "header is invalid"},
		"no start code": {changed(lossy, riffHeader+8+3, 0), "header is invalid"},
		"huge canvas": {changed(alpha, riffHeader+8+4, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF),
			"16777216 x 16777216 pixels are"},
		"other canvas":    {changed(alpha, riffHeader+8+4, 7), "header is invalid"},
		"huge picture":    {changed(alpha, picture+6, 0xFF, 0x3F, 0xFF, 0x3F), "header is invalid"},
		"huge lossless":   {changed(lossless, riffHeader+8+1, 0xFF, 0xFF, 0xFF, 0x0F), "claims 16384 x 16384"},
		"unknown version": {changed(lossless, riffHeader+8+4, 0xF0), "vp8l"},
	} {
		if _, err := DecodeStored(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	for _, data := range [][]byte{lossy, alpha, lossless} {
		cam := scene.Camera{Name: "photo.webp", Path: scenetest.PhotoFile(t, "photo.webp", data[:len(data)*2/3]),
			Width: 8, Height: 8}
		if _, err := Decode(cam); err == nil || !strings.Contains(err.Error(), "ends early") {
			t.Errorf("cut file: %v", err)
		}
	}
}

// An odd chunk is padded; one that claims more than there is holds what there is.
func TestWebPChunks(t *testing.T) {
	data := []byte("AAAA\x03\x00\x00\x00abc\x00BBBB\xff\xff\xff\xffxy")
	first, rest, ok := nextChunk(data)
	if !ok || first.kind != "AAAA" || string(first.content) != "abc" {
		t.Errorf("first chunk %v, %v", first, ok)
	}
	second, rest, ok := nextChunk(rest)
	if !ok || second.kind != "BBBB" || string(second.content) != "xy" {
		t.Errorf("second chunk %v, %v", second, ok)
	}
	if _, _, ok := nextChunk(rest); ok {
		t.Error("a third chunk is found")
	}
}

// FuzzPhoto decodes PNG and WebP.
func FuzzPhoto(f *testing.F) {
	for _, name := range []string{"lossy.webp", "lossyalpha.webp", "losslessalpha.webp", "animated.webp",
		"grayalpha.png", "wide5.jpg.png"} {
		f.Add(readTestdata(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if isPNG(data) && len(data) >= 33 { // with a checksum that lets changes of the header through
			data = bytes.Clone(data)
			binary.BigEndian.PutUint32(data[29:], binary.BigEndian.Uint32(scenetest.CrcOf(data[12:29])))
		}
		img, err := DecodeStored(data)
		if err == nil && (len(img.Pix) != 4*img.Width*img.Height || len(img.Pix) == 0 ||
			img.Width*img.Height/maxPixelsPerByte > len(data)) {
			t.Errorf("%d bytes give %d x %d pixels in %d bytes", len(data), img.Width, img.Height, len(img.Pix))
		}
	})
}
