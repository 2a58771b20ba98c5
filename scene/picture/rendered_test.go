package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// drawnPicture has colours of all sorts, over black with coverage.
func drawnPicture(width, height int) *Picture {
	p := &Picture{Width: width, Height: height}
	for i := range width * height {
		alpha := float32(i%5) / 4
		for k := range 3 {
			v := float32((i*(k+3))%29) / 28 * alpha
			p.Color = append(p.Color, v)
			p.Pix = append(p.Pix, scene.ToByte(255*float64(v)))
		}
		p.Color, p.Pix, p.Depth = append(p.Color, 1-alpha), append(p.Pix, scene.ToByte(255*float64(alpha))),
			append(p.Depth, float32(i)*1.1)
	}
	return p
}

func writeAndRead(t *testing.T, p *Picture, o Options) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a")
	must.Do(t, Write(path, p, o))
	data := must.Get(os.ReadFile(path))(t)
	return data
}

func TestPictureBytes(t *testing.T) {
	p := drawnPicture(37, 21)
	img, err := png.Decode(bytes.NewReader(writeAndRead(t, p, Options{Format: FormatPNG})))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 37 * 21 {
		c := color.NRGBAModel.Convert(img.At(i%37, i/37)).(color.NRGBA)
		if c.R != p.Pix[4*i] || c.G != p.Pix[4*i+1] || c.B != p.Pix[4*i+2] || c.A != 255 {
			t.Fatalf("pixel %d is %v of %v", i, c, p.Pix[4*i:4*i+4])
		}
	}
	if _, isRGB := img.(*image.RGBA); !isRGB {
		t.Errorf("the file is %T, an opaque one is expected", img)
	}
	jpg, err := jpeg.Decode(bytes.NewReader(writeAndRead(t, p, Options{Format: FormatJPEG})))
	if err != nil || jpg.Bounds().Dx() != 37 {
		t.Errorf("jpeg: %v", err)
	}
}

func TestPictureAlpha(t *testing.T) {
	p := drawnPicture(37, 21)
	for _, format := range []string{FormatPNG, FormatPNG16} {
		img := must.Get(png.Decode(bytes.NewReader(writeAndRead(t, p,
			Options{Format: format, Alpha: true, Linear: true}))))(t)
		steps := 255.0
		if format == FormatPNG16 {
			steps = 65535
		}
		for i := range 37 * 21 {
			c := color.NRGBA64Model.Convert(img.At(i%37, i/37)).(color.NRGBA64)
			alpha := 1 - float64(p.Color[4*i+3])
			want := 0.0
			if alpha > 0 {
				want = linearOf(float64(p.Color[4*i]) / alpha)
			}
			if math.Abs(float64(c.A)/65535-alpha) > 0.51/steps || alpha > 0 &&
				math.Abs(float64(c.R)/65535-want) > 0.51/steps {
				t.Fatalf("%s: pixel %d is %v, want red %g, alpha %g", format, i, c, want, alpha)
			}
		}
	}
}

func TestPictureNPY(t *testing.T) {
	p := drawnPicture(5, 3)
	data := writeAndRead(t, p, Options{Format: FormatNPY, Alpha: true})
	want := "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5, 4), }"
	if !bytes.HasPrefix(data, []byte(want)) || len(data) != 128+4*60 || data[127] != '\n' {
		t.Fatalf("header %q of %d bytes", data[:min(128, len(data))], len(data))
	}
	if x := math.Float32frombits(binary.LittleEndian.Uint32(data[128+16*7+12:])); x != 1-p.Color[31] {
		t.Errorf("alpha of pixel 7 is %g, want %g", x, 1-p.Color[31])
	}
	path := filepath.Join(t.TempDir(), "d")
	must.Do(t, WriteDepth(path, p.Depth, 5, 3))
	data, err := os.ReadFile(path)
	if err != nil || len(data) != 128+4*15 ||
		math.Float32frombits(binary.LittleEndian.Uint32(data[128+4*14:])) != p.Depth[14] {
		t.Errorf("depth: %d bytes, %v", len(data), err)
	}
}

// TestHalf compares with the definition of a half, for all of them and what lies between.
func TestHalf(t *testing.T) {
	value := func(h uint16) float64 {
		e, m := int(h>>10&31), float64(h&1023)
		if e == 0 {
			return m / (1 << 24)
		}
		return math.Ldexp(1+m/1024, e-15)
	}
	for h := uint16(0); h < 0x7bff; h++ {
		a, b := value(h), value(h+1)
		middle := (a + b) / 2
		even := h + h&1
		for _, c := range []struct {
			x    float64
			want uint16
		}{{a, h}, {middle, even}, {math.Nextafter(middle, 0), h}, {math.Nextafter(middle, b), h + 1}} {
			x := float32(c.x)
			if float64(x) != c.x { // too fine for float32
				continue
			}
			if got := halfOf(x); got != c.want {
				t.Fatalf("%g becomes %#x, want %#x", x, got, c.want)
			}
			if got := halfOf(-x); got != c.want|0x8000 {
				t.Fatalf("%g becomes %#x", -x, got)
			}
		}
	}
	for x, want := range map[float32]uint16{float32(math.Inf(1)): 0x7bff, 70000: 0x7bff,
		float32(math.Inf(-1)): 0xfbff} {
		if got := halfOf(x); got != want {
			t.Errorf("%g becomes %#x, want %#x", x, got, want)
		}
	}
}

func TestWritePictureRefuses(t *testing.T) {
	p := drawnPicture(4, 4)
	for _, o := range []Options{{Format: "bmp"}, {}} {
		if err := Write(filepath.Join(t.TempDir(), "a"), p, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	p.Color = p.Color[4:]
	if err := Write(filepath.Join(t.TempDir(), "a"), p, Options{Format: FormatEXR}); err == nil {
		t.Error("a picture without its last pixel is taken")
	}
}

// readEXR undoes encodeEXR for a picture of that size and channels of so many bytes a pixel: the rows of each channel,
// in the file's order.
func readEXR(t *testing.T, data []byte, width, height int, bytesOf []int) [][]byte {
	t.Helper()
	at := bytes.Index(data, []byte("screenWindowWidth\x00float\x00")) + 24 + 4 + 4 + 1
	channels := make([][]byte, len(bytesOf))
	for first := 0; first < height; first += exrLines {
		block := int(binary.LittleEndian.Uint64(data[at:]))
		at += 8
		if y, n := int(binary.LittleEndian.Uint32(data[block:])),
			int(binary.LittleEndian.Uint32(data[block+4:])); y != first || block+8+n > len(data) {
			t.Fatalf("block of row %d says row %d and %d bytes", first, y, n)
		}
		packed := data[block+8:][:binary.LittleEndian.Uint32(data[block+4:])]
		lines := min(exrLines, height-first)
		size := 0
		for _, n := range bytesOf {
			size += n * width * lines
		}
		raw := packed
		if len(packed) < size {
			z, err := zlib.NewReader(bytes.NewReader(packed))
			if err != nil {
				t.Fatal(err)
			}
			if packed, err = io.ReadAll(z); err != nil || len(packed) != size {
				t.Fatalf("%d bytes of %d: %v", len(packed), size, err)
			}
			for i := 1; i < size; i++ {
				packed[i] += packed[i-1] - 128
			}
			raw = make([]byte, size)
			for i := range raw {
				raw[i] = packed[i/2+i%2*((size+1)/2)]
			}
		}
		for range lines {
			for c, n := range bytesOf {
				channels[c], raw = append(channels[c], raw[:n*width]...), raw[n*width:]
			}
		}
	}
	return channels
}

func TestPictureEXR(t *testing.T) {
	p := drawnPicture(37, 41)
	data := writeAndRead(t, p, Options{Format: FormatEXR, Alpha: true, Linear: true})
	channels := readEXR(t, data, 37, 41, []int{2, 2, 2, 2, 4}) // A, B, G, R, Z
	half := func(c, i int) uint16 { return binary.LittleEndian.Uint16(channels[c][2*i:]) }
	for i := range 37 * 41 {
		alpha := 1 - float64(p.Color[4*i+3])
		want := [4]float64{alpha}
		for k := range 3 {
			if alpha > 0 {
				want[3-k] = linearOf(float64(p.Color[4*i+k])/alpha) * alpha
			}
		}
		for c, x := range want {
			if got := half(c, i); got != halfOf(float32(x)) {
				t.Fatalf("pixel %d: channel %d is %#x, want %#x", i, c, got, halfOf(float32(x)))
			}
		}
		if z := math.Float32frombits(binary.LittleEndian.Uint32(channels[4][4*i:])); z != p.Depth[i] {
			t.Fatalf("pixel %d: depth %g, want %g", i, z, p.Depth[i])
		}
	}
	p.Depth = nil
	if data := writeAndRead(t, p, Options{Format: FormatEXR}); bytes.Contains(data, []byte("A\x00\x01\x00")) ||
		!bytes.Contains(data, []byte("channels\x00chlist\x00\x37\x00\x00\x00B\x00")) {
		t.Error("a picture without alpha and depth has other channels than B, G, R")
	}
}
