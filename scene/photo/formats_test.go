package photo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

func TestForeignKinds(t *testing.T) {
	box := func(brand string) []byte { return []byte("\x00\x00\x00\x1cftyp" + brand + "\x00\x00\x00\x00") }
	for name, c := range map[string]struct {
		data       []byte
		kind, hint string
	}{
		"a.heic": {box("heic"), "HEIC", `for f in DIR/*.heic; do heif-convert -q 95 "$f" "${f%.*}.jpg"; done`},
		"a.HIF":  {box("mif1"), "HEIC", `for f in DIR/*.HIF; do`},
		"a.avif": {box("avif"), "AVIF", "mogrify -format png DIR/*.avif"},
		"a.CR3":  {box("crx "), "a raw photo", `for f in DIR/*.CR3; do darktable-cli "$f" "${f%.*}.jpg"; done`},
		"a.raf":  {[]byte("FUJIFILMCCD-RAW 0201"), "a raw photo", "darktable-cli"},
		"a.cr2":  {[]byte("II*\x00\x10\x00\x00\x00CR\x02\x00"), "a raw photo", "darktable-cli"},
		"a.tif":  {[]byte("MM\x00*\x00\x00\x00\x08"), "TIFF", "mogrify -format png DIR/*.tif"},
		"a.mov":  {box("qt  "), "a video", "ffmpeg -i DIR/a.mov -qscale:v 1 -qmin 1 -vf fps=2 images/%05d.jpg"},
		"a b's.mp4": {box("isom"), "a video",
			`ffmpeg -i 'DIR/a b'\''s.mp4' -qscale:v 1 -qmin 1 -vf fps=2 images/%05d.jpg`},
		"b.mov":  {[]byte("\x00\x00\x00\x08wide\x00\x00\x00\x00mdat"), "a video", "ffmpeg"},
		"a.avi":  {[]byte("RIFF\x00\x01\x00\x00AVI LIST"), "a video", "ffmpeg"},
		"ts.mp4": {append(append([]byte("G"), make([]byte, 187)...), 'G'), "a video", "ffmpeg"},
		"a.webm": {[]byte("\x1aE\xdf\xa3"), "a video", "ffmpeg"},
		"a.gif":  {[]byte("GIF89a"), "GIF", "mogrify -format png DIR/*.gif"},
		"a.exr":  {[]byte("v/1\x01\x02\x00"), "EXR", "mogrify -format png DIR/*.exr"},
		"a.jxl":  {[]byte("\xff\x0a\x00"), "JPEG XL", `for f in DIR/*.jxl; do djxl "$f" "${f%.*}.png"; done`},
		"a.bmp":  {[]byte("BM\x00\x00"), "BMP", "mogrify -format png DIR/*.bmp"},
	} {
		path := scenetest.PhotoFile(t, name, c.data)
		want := strings.ReplaceAll(c.hint, "DIR", filepath.Dir(path))
		_, err := Decode(scene.Camera{Name: name, Path: path, Width: 8, Height: 8})
		if err == nil || !strings.Contains(err.Error(), "the file is "+c.kind) ||
			!strings.Contains(fault.Hint(err), want) || !errors.Is(err, fault.ErrData) {
			t.Errorf("%s: %v with hint %q, want %q", name, err, fault.Hint(err), want)
		}
		if hint := ConversionHint(path); !strings.Contains(hint, want) {
			t.Errorf("%s: its name gives %q, want %q", name, hint, want)
		}
		if _, _, err := Size(path); err == nil ||
			HintOf(path, err) != fault.Hint(decodeError(scene.Camera{Path: path, Width: 8, Height: 8}, t)) {
			t.Errorf("%s: the header gives %v", name, err)
		}
	}
	for _, name := range []string{"a.jpg", "a.webp", "a", "heic", "a.txt"} {
		if hint := ConversionHint(name); hint != "" || IsPhoto(name) != (name == "a.jpg" || name == "a.webp") {
			t.Errorf("%s: hint %q, photo %v", name, hint, IsPhoto(name))
		}
	}
}

// TestForeignKindIn takes files for what they hold, whatever their names, and texts for nothing.
func TestForeignKindIn(t *testing.T) {
	for data, want := range map[string]string{"\x00\x00\x00\x1cftypheix": "heic", "\x00\x00\x00\x1cftypavif": "heic",
		"\x00\x00\x00\x1cftypcrx ": "dng", "MMOR\x00\x00": "dng", "II*\x00\x08\x00\x00\x00": "tiff", "MM\x00+\x00\x08": "tiff",
		"BM\x00": "bmp", "GIF87a": "gif", "\x00\x00\x00\x1cftypqt  ": "mov", "\x00\x00\x00\x1cmoov": "mov",
		"RIFF1234AVI LIST": "avi", "\x1aE\xdf\xa3": "matroska", "\x00\x00\x01\xba": "mpeg",
		"\x00\x00\x00\x18stypmsdh": "mov", "\x00\x00\x00\x2csidx": "mov", "\x00\x00\x02\x00moof": "mov",
		"G" + strings.Repeat("\x00", 187) + "G": "mpegts", "\x00\x00\x00\x00G" + strings.Repeat("\x00", 191) + "G": "mpegts",
		"\x00\x00\x00\x00G" + strings.Repeat("\x00", 191): "",
		"#EXTM3U\n": "", "<svg xmlns=": "", "ffconcat version 1.0": "", "%PDF-1.4": "", "G": "", "II": "", "": "",
		"\xff\xd8\xff": ""} {
		got := ""
		if kind := ForeignKindIn(scenetest.PhotoFile(t, "a.tif", []byte(data))); kind != nil {
			got = kind.Reader
		}
		if got != want {
			t.Errorf("%q is %q, want %q", data, got, want)
		}
	}
	if kind := ForeignKindIn(t.TempDir()); kind != nil {
		t.Errorf("a folder is %s", kind.Name)
	}
}

func decodeError(c scene.Camera, t *testing.T) error {
	t.Helper()
	_, err := Decode(c)
	if err == nil {
		t.Fatalf("%s decodes", c.Path)
	}
	return err
}

// Sixteen bits become eight by rounding, whatever the value.
func TestSixteenBits(t *testing.T) {
	src := image.NewGray16(image.Rect(0, 0, 256, 256))
	for i := range 1 << 16 {
		binary.BigEndian.PutUint16(src.Pix[2*i:], uint16(i))
	}
	got := must.Get(DecodeStored(scenetest.PngBytes(t, src)))(t)
	for i := range 1 << 16 {
		if want := uint8((i + 128) / 257); got.Pix[4*i] != want || got.Pix[4*i+2] != want || got.Pix[4*i+3] != 255 {
			t.Fatalf("%d becomes %v, want %d", i, got.Pix[4*i:4*i+4], want)
		}
	}
}

// A PNG without alpha can name a colour that is transparent.
func TestPNGTransparentColour(t *testing.T) {
	r := image.Rect(0, 0, 7, 5)
	rgb8, rgb16, gray8, gray16 := image.NewRGBA(r), image.NewRGBA64(r), image.NewGray(r), image.NewGray16(r)
	for _, src := range []interface {
		image.Image
		imageSetter
	}{rgb8, rgb16, gray8, gray16} {
		draw(src, false)
	}
	const x, y = 3, 2 // of the colour
	be := binary.BigEndian
	colour := func(values ...uint16) (out []byte) {
		for _, v := range values {
			out = be.AppendUint16(out, v)
		}
		return out
	}
	p8, p16 := rgb8.RGBAAt(x, y), rgb16.RGBA64At(x, y)
	for name, c := range map[string]struct {
		src    image.Image
		colour []byte
	}{
		"rgb8":   {rgb8, colour(uint16(p8.R), uint16(p8.G), uint16(p8.B))},
		"rgb16":  {rgb16, colour(p16.R, p16.G, p16.B)},
		"gray8":  {gray8, colour(uint16(gray8.GrayAt(x, y).Y))},
		"gray16": {gray16, colour(gray16.Gray16At(x, y).Y)},
	} {
		plain := must.Get(DecodeStored(scenetest.PngBytes(t, c.src)))(t)
		got := must.Get(DecodeStored(scenetest.WithChunk(scenetest.PngBytes(t, c.src), "tRNS", c.colour)))(t)
		for i := range 35 {
			want := [4]uint8(plain.Pix[4*i:])
			if c.src.At(i%7, i/7) == c.src.At(x, y) {
				want[3] = 0
			}
			if p := [4]uint8(got.Pix[4*i:]); p != want {
				t.Errorf("%s: pixel %d is %v, want %v", name, i, p, want)
			}
		}
		if bytes.Equal(plain.Pix, got.Pix) {
			t.Errorf("%s: nothing is transparent", name)
		}
	}
}

// The limit on photos and the way out are named.
func TestTooLarge(t *testing.T) {
	data := scenetest.PngBytes(t, image.NewGray(image.Rect(0, 0, 8, 8)))
	binary.BigEndian.PutUint32(data[16:], 20000)
	binary.BigEndian.PutUint32(data[20:], 15000)
	copy(data[29:], scenetest.CrcOf(data[12:29]))
	path := scenetest.PhotoFile(t, "a b.png", data)
	const want = "20000 x 15000 pixels are 300 megapixels, more than the 268 that are read"
	_, _, err := Size(path)
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	hint := "scale such photos down, their poses stay as they are: mogrify -resize 94% '" + path + "'"
	err = decodeError(scene.Camera{Path: path, Width: 80, Height: 60}, t)
	if !strings.Contains(err.Error(), want) || fault.Hint(err) != hint || HintOf(path, err) != hint {
		t.Errorf("%v, %s, want %s", err, fault.Hint(err), hint)
	}
	if e := (scene.TooLarge{Width: 20000, Height: 15000}); 20000*e.Scale()/100*(15000*e.Scale()/100) > scene.MaxPixels {
		t.Errorf("%d %% are too large", e.Scale())
	}
}
