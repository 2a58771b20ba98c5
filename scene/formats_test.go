package scene

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestForeignKinds(t *testing.T) {
	box := func(brand string) []byte { return []byte("\x00\x00\x00\x1cftyp" + brand + "\x00\x00\x00\x00") }
	for name, c := range map[string]struct {
		data       []byte
		kind, hint string
	}{
		"a.heic":    {box("heic"), "HEIC", `for f in DIR/*.heic; do heif-convert -q 95 "$f" "${f%.*}.jpg"; done`},
		"a.HIF":     {box("mif1"), "HEIC", `for f in DIR/*.HIF; do`},
		"a.avif":    {box("avif"), "AVIF", "mogrify -format png DIR/*.avif"},
		"a.CR3":     {box("crx "), "a raw photo", `for f in DIR/*.CR3; do darktable-cli "$f" "${f%.*}.jpg"; done`},
		"a.raf":     {[]byte("FUJIFILMCCD-RAW 0201"), "a raw photo", "darktable-cli"},
		"a.cr2":     {[]byte("II*\x00\x10\x00\x00\x00CR\x02\x00"), "a raw photo", "darktable-cli"},
		"a.tif":     {[]byte("MM\x00*\x00\x00\x00\x08"), "TIFF", "mogrify -format png DIR/*.tif"},
		"a.mov":     {box("qt  "), "a video", "ffmpeg -i DIR/a.mov -qscale:v 1 -qmin 1 -vf fps=2 images/%05d.jpg"},
		"a b's.mp4": {box("isom"), "a video", `ffmpeg -i 'DIR/a b'\''s.mp4' -qscale:v 1 -qmin 1 -vf fps=2 images/%05d.jpg`},
		"a.webm":    {[]byte("\x1aE\xdf\xa3"), "a video", "ffmpeg"},
		"a.gif":     {[]byte("GIF89a"), "GIF", "mogrify -format png DIR/*.gif"},
		"a.bmp":     {[]byte("BM\x00\x00"), "BMP", "mogrify -format png DIR/*.bmp"},
	} {
		path := photoFile(t, name, c.data)
		want := strings.ReplaceAll(c.hint, "DIR", filepath.Dir(path))
		_, err := Camera{Name: name, Path: path, Width: 8, Height: 8}.Decode()
		if err == nil || !strings.Contains(err.Error(), "the file is "+c.kind) || !strings.Contains(Hint(err), want) || !errors.Is(err, ErrData) {
			t.Errorf("%s: %v with hint %q, want %q", name, err, Hint(err), want)
		}
		if hint := ConversionHint(path); !strings.Contains(hint, want) {
			t.Errorf("%s: its name gives %q, want %q", name, hint, want)
		}
		if _, _, err := photoSize(path); err == nil || foreignHint(path, err) != Hint(Camera{Path: path, Width: 8, Height: 8}.decodeError(t)) {
			t.Errorf("%s: the header gives %v", name, err)
		}
	}
	for _, name := range []string{"a.jpg", "a.webp", "a", "heic", "a.txt"} {
		if hint := ConversionHint(name); hint != "" || isPhoto(name) != (name == "a.jpg" || name == "a.webp") {
			t.Errorf("%s: hint %q, photo %v", name, hint, isPhoto(name))
		}
	}
}

func (c Camera) decodeError(t *testing.T) error {
	t.Helper()
	_, err := c.Decode()
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
	got, err := decodePhoto(pngBytes(t, src))
	if err != nil {
		t.Fatal(err)
	}
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
		plain, err := decodePhoto(pngBytes(t, c.src))
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodePhoto(withChunk(pngBytes(t, c.src), "tRNS", c.colour))
		if err != nil {
			t.Fatal(err)
		}
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

// A capture of photos of another kind says how to convert them; one of turned photos, that their tag has not been applied.
func TestCaptureHints(t *testing.T) {
	upright := pngBytes(t, image.NewGray(image.Rect(0, 0, tinyHeight, tinyWidth)))
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"heic":   {[]byte("\x00\x00\x00\x1cftypheic\x00\x00\x00\x00"), "heif-convert -q 95"},
		"tagged": {withChunk(upright, "eXIf", exifBlock(binary.LittleEndian, 6)), "orientation tag 6"},
		"turned": {withChunk(upright, "eXIf", exifBlock(binary.LittleEndian, 3)), "without applying"},
	} {
		root := tinyCapture(t)
		put(t, filepath.Join(root, "images", tinyCameras()[2].Name), c.data)
		if _, err := Load(root, LoadOptions{Model: AnyModel, Strict: true}); err == nil || !strings.Contains(Hint(err), c.want) {
			t.Errorf("%s: %v with hint %q, want %q", name, err, Hint(err), c.want)
		}
	}
}

// Photos are found under every name that isPhoto lists, in any case.
func TestWebPCapture(t *testing.T) {
	root := tinyCapture(t)
	name := tinyCameras()[1].Name
	if err := os.Remove(filepath.Join(root, "images", name)); err != nil {
		t.Fatal(err)
	}
	photo := filepath.Join(root, "images", strings.TrimSuffix(name, ".png")+".WEBP")
	put(t, photo, readTestdata(t, "lossless.webp"))
	c := mustLoad(t, root, anyModel())
	i := slices.IndexFunc(c.Cameras, func(cam Camera) bool { return cam.Path == photo })
	if i < 0 {
		t.Fatalf("the photo is not found: %v", c.Warnings)
	}
	if img, err := c.Cameras[i].Decode(); err != nil || img.Width != c.Cameras[i].Width {
		t.Errorf("%d pixels wide, %v", img.Width, err)
	}
}

// A model of JPEGs beside which only the phone's own files lie: the message says how to convert them.
func TestMissingPhotoOfAnotherKind(t *testing.T) {
	for name, test := range map[string]struct {
		files   []string
		command string
	}{
		"heic":       {[]string{"p1.HEIC", "p1.mov"}, `heif-convert`},
		"heif":       {[]string{"p1.heif"}, `heif-convert`},
		"avif":       {[]string{"p1.avif"}, `mogrify -format png`},
		"canon":      {[]string{"p1.cr2"}, `darktable-cli`},
		"nikon":      {[]string{"P1.NEF"}, `darktable-cli`},
		"dng":        {[]string{"p1.dng"}, `darktable-cli`},
		"with both":  {[]string{"p1.png.heic"}, `heif-convert`},
		"video only": {[]string{"p1.mp4"}, ``},
		"others":     {[]string{"p11.heic", "p.heic"}, ``},
	} {
		for _, json := range []bool{false, true} {
			root := tinyCapture(t)
			if json {
				putJSON(t, filepath.Join(root, "transforms.json"), tinyTop())
				removed("sparse")(t, root)
			}
			removed("images/p1.png")(t, root)
			for _, f := range test.files {
				put(t, filepath.Join(root, "images", f), []byte("x"))
			}
			want := ""
			if test.command != "" {
				want = ConversionHint(filepath.Join(root, "images", test.files[0]))
			}
			c := mustLoad(t, root, anyModel())
			w, ok := c.warning("missing-photos")
			if !ok || w.Remedy != want || !strings.Contains(w.Remedy, test.command) || strings.Contains(w.Text, test.files[0]) != (want != "") {
				t.Errorf("%s, JSON %v: %q, remedy %q", name, json, w.Text, w.Remedy)
			}
			p, _ := inspect(t, c, false).problem("missing-photos")
			if want != "" && p.Remedy != want || want == "" && p.Remedy != remedies["missing-photos"] {
				t.Errorf("%s, JSON %v: %+v", name, json, p)
			}
			o := anyModel()
			o.Strict = true
			if _, err := Load(root, o); err == nil || want != "" && (Hint(err) != want || !strings.Contains(err.Error(), test.files[0])) {
				t.Errorf("%s, JSON %v: %v, hint %q", name, json, err, Hint(err))
			}
		}
	}
}

// A folder of photos that must be converted, without a model.
func TestFootageOfAnotherKind(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "images", "IMG_1.HEIC"), []byte("x"))
	put(t, filepath.Join(root, "images", "IMG_1.MOV"), []byte("x"))
	if _, err := Load(root, anyModel()); err == nil || !strings.Contains(Hint(err), "heif-convert -q 95") || !strings.Contains(Hint(err), ".HEIC") {
		t.Errorf("%v, hint %q", err, Hint(err))
	}
}
