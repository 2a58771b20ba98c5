package photo

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

type imageSetter interface{ Set(x, y int, c color.Color) }

// draw fills an image with a pattern in which colour and alpha vary.
func draw(img imageSetter, alpha bool) {
	for y := range 5 {
		for x := range 7 {
			c := color.NRGBA64{R: uint16(9001 * x), G: uint16(13007 * y), B: uint16(4001 * (x + y)), A: 65535}
			if alpha {
				c.A = uint16(10000 * (x % 7))
			}
			img.Set(x, y, c)
		}
	}
}

func TestPNGForms(t *testing.T) {
	r := image.Rect(0, 0, 7, 5)
	rgb8, rgba8, rgb16, rgba16 := image.NewRGBA(r), image.NewNRGBA(r), image.NewRGBA64(r), image.NewNRGBA64(r)
	gray8, gray16 := image.NewGray(r), image.NewGray16(r)
	palette := image.NewPaletted(r,
		color.Palette{color.NRGBA{R: 255, G: 0, B: 0, A: 255}, color.NRGBA{R: 0, G: 200, B: 0, A: 128},
			color.NRGBA{R: 9, G: 8, B: 7, A: 0}})
	draw(rgb8, false)
	draw(rgba8, true)
	draw(rgb16, false)
	draw(rgba16, true)
	draw(gray8, false)
	draw(gray16, false)
	for i := range palette.Pix {
		palette.Pix[i] = uint8(i % 3)
	}
	for name, src := range map[string]image.Image{"rgb8": rgb8, "rgba8": rgba8, "rgb16": rgb16, "rgba16": rgba16,
		"gray8": gray8, "gray16": gray16, "palette": palette} {
		got, err := DecodeStored(scenetest.PngBytes(t, src))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range 35 {
			want := straight(src.At(i%7, i/7))
			if p := [4]uint8(got.Pix[4*i:]); p != want {
				t.Fatalf("%s: pixel %d is %v, want %v", name, i, p, want)
			}
		}
	}
}

// straight is c in 8 bits, rounded, without multiplication by alpha.
func straight(c color.Color) [4]uint8 {
	switch c := c.(type) {
	case color.NRGBA:
		return [4]uint8{c.R, c.G, c.B, c.A}
	case color.NRGBA64:
		return [4]uint8{to8(c.R), to8(c.G), to8(c.B), to8(c.A)}
	}
	r, g, b, a := c.RGBA() // opaque
	return [4]uint8{to8(uint16(r)), to8(uint16(g)), to8(uint16(b)), to8(uint16(a))}
}

func to8(v uint16) uint8 { return uint8(float64(v)/257 + 0.5) }

// The standard library's encoder cannot write grey with alpha; the reference file was written by Pillow with these
// values.
func TestPNGGrayAlpha(t *testing.T) {
	got := decodeFile(t, "testdata/grayalpha.png")
	want := []uint8{10, 10, 10, 255, 20, 20, 20, 128, 30, 30, 30, 0, 40, 40, 40, 7}
	if got.Width != 2 || got.Height != 2 || !bytes.Equal(got.Pix, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 7, 5))
	draw(img, true)
	whole := scenetest.PngBytes(t, img)
	huge := bytes.Clone(whole[:33])
	copy(huge[16:], []byte{0, 0, 0x40, 0, 0, 0, 0x40, 0}) // 16384 x 16384, and the checksum of the header below
	copy(huge[29:], scenetest.CrcOf(huge[12:29]))
	photo := must.Get(os.ReadFile("testdata/420.jpg"))(t)
	corrupt := bytes.Clone(whole)
	corrupt[len(corrupt)-20] ^= 0x55
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":     {nil, "empty"},
		"text":      {[]byte("not a photo at all"), "neither JPEG nor PNG"},
		"png cut":   {whole[:len(whole)-30], "ends early"},
		"png huge":  {append(huge, "IEND"...), "claims 16384 x 16384"},
		"png bits":  {corrupt, "png"},
		"jpeg cut":  {photo[:len(photo)/2], "ends early"},
		"jpeg head": {photo[:20], "ends early"},
		"jpeg two":  {photo[:2], "ends early"},
		"heic":      {[]byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00"), "is HEIC"},
	} {
		path := scenetest.PhotoFile(t, "photo.jpg", c.data)
		_, err := Decode(scene.Camera{Name: "photo.jpg", Path: path, Width: 48, Height: 32})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) ||
			!errors.Is(err, fault.ErrData) || fault.Hint(err) == "" {
			t.Errorf("%s: error %v with hint %q, want one with %q", name, err, fault.Hint(err), c.want)
		}
	}
	for _, cam := range []scene.Camera{{Name: "gone.jpg", Width: 3, Height: 3},
		{Name: "gone.jpg", Path: filepath.Join(t.TempDir(), "gone.jpg"), Width: 3, Height: 3}} {
		if _, err := Decode(cam); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, fault.ErrData) ||
			fault.Hint(err) == "" {
			t.Errorf("missing photo: %v", err)
		}
	}
	if _, err := Decode((scene.Camera{Path: "x", Width: 1 << 40, Height: 1 << 40})); err == nil {
		t.Error("a camera of 2^80 pixels decodes")
	}
}

func TestDecodeRealPhotos(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/data/fox_pinhole/images/*.jpg") // the pattern is well-formed
	if len(files) < 3 {
		t.Skip("the capture fox_pinhole is not beside the repository")
	}
	for _, f := range files[:3] {
		img := decodeFile(t, f)
		small := must.Get(Decode(scene.Camera{Path: f, Width: img.Width / 4, Height: img.Height / 4}))(t)
		if a, b := meanLevel(img), meanLevel(small); a-b > 0.5 || b-a > 0.5 {
			t.Errorf("%s: mean level %v, reduced %v", f, a, b)
		}
	}
}

func meanLevel(img scene.Image) float64 {
	var sum float64
	for _, v := range img.Pix {
		sum += float64(v)
	}
	return sum / float64(len(img.Pix))
}
