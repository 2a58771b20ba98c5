package photo

import (
	"bytes"
	"encoding/binary"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/jpeg"
)

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
	return data
}

func decodeFile(t *testing.T, path string) scene.Image {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	img := must.Get(DecodeStored(data))(t)
	return img
}

// compareReferences decodes the files of testdata that have a reference beside them, a PNG of the same name, and wants
// its samples.
func compareReferences(t *testing.T, pattern string, atLeast int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern+".png"))
	if err != nil || len(files) < atLeast {
		t.Fatalf("%d references, %v", len(files), err)
	}
	for _, reference := range files {
		file := strings.TrimSuffix(reference, ".png")
		t.Run(filepath.Base(file), func(t *testing.T) {
			f := must.Get(os.Open(reference))(t)
			defer f.Close()
			decoded := must.Get(png.Decode(f))(t)
			got, want := decodeFile(t, file), fromImage(decoded)
			if got.Width != want.Width || got.Height != want.Height {
				t.Fatalf("got %d x %d, want %d x %d", got.Width, got.Height, want.Width, want.Height)
			}
			wrong, largest := 0, 0
			for i, v := range got.Pix {
				if d := max(int(v)-int(want.Pix[i]), int(want.Pix[i])-int(v)); d > 0 {
					wrong, largest = wrong+1, max(largest, d)
				}
			}
			if wrong > 0 {
				t.Errorf("%d of %d samples differ, by %d at most", wrong, len(got.Pix), largest)
			}
			if w, h, err := Size(file); err != nil || w != want.Width || h != want.Height {
				t.Errorf("the header gives %d x %d, %v", w, h, err)
			}
		})
	}
}

// The references are what libjpeg-turbo 3 makes of the files, with its default settings; CMYK converted by Pillow.
func TestJPEGAgainstLibjpeg(t *testing.T) { compareReferences(t, "*.jpg", 27) }

// cutAt returns data up to its first marker m and from there on.
func cutAt(t *testing.T, data []byte, m uint8) (before, from []byte) {
	t.Helper()
	before, _, ok := bytes.Cut(data, []byte{0xFF, m})
	if !ok {
		t.Fatalf("no marker %#x", m)
	}
	return before, data[len(before):]
}

// Files that are damaged without loss decode like whole ones.
func TestJPEGTolerates(t *testing.T) {
	for _, name := range []string{"restart.jpg", "420progressive.jpg", "separate.jpg"} {
		whole := readTestdata(t, name)
		want := must.Get(DecodeStored(whole))(t)
		before, scan := cutAt(t, whole, jpeg.MarkerSOS)
		for what, data := range map[string][]byte{
			"no end":          whole[:len(whole)-2],
			"bytes behind":    append(bytes.Clone(whole), "\xff\xd8\xff\xc0 and more"...),
			"bytes instead":   append(bytes.Clone(whole[:len(whole)-2]), 1, 2, 3),
			"fill bytes":      bytes.Join([][]byte{before, {0xFF, 0xFF}, scan}, nil),
			"stray bytes":     bytes.Join([][]byte{before, {0, 7, 0xFF, 0, 9}, scan}, nil),
			"fill before end": append(bytes.Clone(whole[:len(whole)-2]), 0xFF, 0xFF, jpeg.MarkerEOI),
			"other segments": bytes.Join([][]byte{before,
				{0xFF, 0xE7, 0, 4, 1, 2, 0xFF, jpeg.MarkerTEM, 0xFF, 0xCC, 0, 3, 0}, scan}, nil),
		} {
			if got, err := DecodeStored(data); err != nil || !bytes.Equal(got.Pix, want.Pix) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}

// Every cut into what is needed says that the file ends early.
func TestJPEGCut(t *testing.T) {
	for _, name := range []string{"restart.jpg", "separate.jpg", "progressivedeep.jpg", "420.jpg"} {
		whole := readTestdata(t, name)
		for n := 2; n < len(whole)-2; n++ {
			if _, err := DecodeStored(whole[:n]); err == nil || !strings.Contains(err.Error(), "ends early") {
				t.Errorf("%s cut to %d of %d bytes: %v", name, n, len(whole), err)
			}
		}
	}
}

func TestJPEGRefuses(t *testing.T) {
	photo := readTestdata(t, "420.jpg")
	_, frame := cutAt(t, photo, jpeg.MarkerSOF0)
	at := len(photo) - len(frame)
	_, scan := cutAt(t, photo, jpeg.MarkerSOS)
	changed := func(offset int, values ...byte) []byte {
		data := bytes.Clone(photo)
		copy(data[offset:], values)
		return data
	}
	without := func(m uint8) []byte {
		before, segment := cutAt(t, photo, m)
		return append(bytes.Clone(before), segment[2+binary.BigEndian.Uint16(segment[2:]):]...)
	}
	restart := readTestdata(t, "restart.jpg")
	_, second := cutAt(t, restart, jpeg.MarkerRST0+1)
	wrongRestart := bytes.Clone(restart)
	wrongRestart[len(restart)-len(second)+1]++
	for what, c := range map[string]struct {
		data []byte
		want string
	}{
		"lossless":          {changed(at+1, 0xC3), "lossless JPEG is not supported"},
		"arithmetic":        {changed(at+1, 0xC9), "arithmetic-coded JPEG is not supported"},
		"hierarchical":      {changed(at+1, 0xC5), "hierarchical JPEG is not supported"},
		"12 bits":           {changed(at+4, 12), "12 bits"},
		"no height":         {changed(at+5, 0, 0), "48 x 0"},
		"two components":    {changed(at+9, 2), "2 components"},
		"huge":              {changed(at+5, 0xFF, 0xFF, 0xFF, 0xFF), "65535 x 65535 pixels are"},
		"no sampling":       {changed(at+11, 0x20), "2 x 0"},
		"fraction":          {changed(at+11, 0x22, 0, 2, 0x31), "not supported"},
		"twice":             {changed(at+13, 1), "numbered 1"},
		"no quantisation":   {without(jpeg.MarkerDQT), "table"},
		"no code":           {changed(len(photo)-len(scan)+6, 0x32), "table"},
		"no frame":          {without(jpeg.MarkerSOF0), "before the frame"},
		"unknown component": {changed(len(photo)-len(scan)+5, 9), "component 9"},
		"component again":   {changed(len(photo)-len(scan)+7, 1), "twice"},
		"frame again":       {bytes.Join([][]byte{photo[:at], frame[:19], frame}, nil), "two frames"},
		"short segment":     {changed(at+2, 0, 1), "shorter than"},
		"wrong restart":     {wrongRestart, "restart marker 1"},
		"nothing":           {[]byte("\xff\xd8\xff\xd9"), "holds no image"},
		"early end":         {append(bytes.Clone(photo[:len(photo)-200]), 0xFF, jpeg.MarkerEOI), "ends early"},
	} {
		if _, err := DecodeStored(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// Frames of Motion JPEG come without the tables of the standard, which libjpeg's encoder uses too.
func TestJPEGStandardTables(t *testing.T) {
	whole := readTestdata(t, "420.jpg")
	bare := bytes.Clone(whole)
	for {
		before, from, ok := bytes.Cut(bare, []byte{0xFF, jpeg.MarkerDHT})
		if !ok {
			break
		}
		bare = append(bytes.Clone(before), from[binary.BigEndian.Uint16(from):]...)
	}
	want := must.Get(DecodeStored(whole))(t)
	if got, err := DecodeStored(bare); err != nil || len(bare) > len(whole)-400 || !bytes.Equal(got.Pix, want.Pix) {
		t.Errorf("%d of %d bytes decode otherwise: %v", len(bare), len(whole), err)
	}
}

// The memory that a file can ask for is bounded by its size: samples, coefficients and pixels.
func FuzzJPEG(f *testing.F) {
	for _, name := range []string{"420", "420progressive", "restart", "separate", "progressivedeep", "ycck", "gray",
		"extended16bit"} {
		f.Add(readTestdata(f, name+".jpg"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		img, err := jpeg.Decode(data)
		if err == nil && (len(img.Pix) != 4*img.Width*img.Height || len(img.Pix) == 0 ||
			len(img.Pix)/4/jpeg.PixelsPerByte > len(data)) {
			t.Errorf("%d bytes give %d x %d pixels in %d bytes", len(data), img.Width, img.Height, len(img.Pix))
		}
		if w, h, sizeErr := jpeg.Size(bytes.NewReader(data)); err == nil &&
			(sizeErr != nil || w != img.Width || h != img.Height) {
			t.Errorf("the header gives %d x %d, %v, the image %d x %d", w, h, sizeErr, img.Width, img.Height)
		}
	})
}

// BenchmarkJPEG decodes a photo of 2 megapixels.
func BenchmarkJPEG(b *testing.B) {
	files, _ := filepath.Glob("../../../shared/data/desk/images/*.jpg") // the pattern is well-formed
	if len(files) == 0 {
		b.Skip("the capture desk is not beside the repository")
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		b.Fatal(err)
	}
	pixels := 0
	for b.Loop() {
		img, err := jpeg.Decode(data)
		if err != nil {
			b.Fatal(err)
		}
		pixels = img.Width * img.Height
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(pixels), "ns/pixel")
}
