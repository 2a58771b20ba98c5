package scene

import (
	"bytes"
	"encoding/binary"
	"image"
	stdjpeg "image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decodeFile(t *testing.T, path string) Image {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	img, err := decodePhoto(data)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// compareReferences decodes the files of testdata that have a reference beside them, a PNG of the same name, and wants its samples.
func compareReferences(t *testing.T, pattern string, atLeast int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern+".png"))
	if err != nil || len(files) < atLeast {
		t.Fatalf("%d references, %v", len(files), err)
	}
	for _, reference := range files {
		file := strings.TrimSuffix(reference, ".png")
		t.Run(filepath.Base(file), func(t *testing.T) {
			f, err := os.Open(reference)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			decoded, err := png.Decode(f)
			if err != nil {
				t.Fatal(err)
			}
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
			if w, h, err := photoSize(file); err != nil || w != want.Width || h != want.Height {
				t.Errorf("the header gives %d x %d, %v", w, h, err)
			}
		})
	}
}

// The references are what libjpeg-turbo 3 makes of the files, with its default settings; CMYK converted by Pillow.
func TestJPEGAgainstLibjpeg(t *testing.T) { compareReferences(t, "*.jpg", 27) }

// A transform that leaves out zeros gives the samples of the whole one, also where they are far out of range.
func TestIDCTShortcuts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const stride = 11
	for n := range 20000 {
		var block [64]int16
		last := n % (lastOfCorner + 1)
		for k := range last + 1 {
			block[zigzag[k]] = int16(rng.IntN(1<<uint(1+n%12)) - 1<<uint(n%12))
		}
		var got, want [8 * stride]uint8
		idct(got[:], stride, &block, last)
		idctFull(want[:], stride, &block)
		if got != want {
			t.Fatalf("last %d, block %v:\ngot  %v\nwant %v", last, block, got, want)
		}
	}
}

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
		want, err := decodePhoto(whole)
		if err != nil {
			t.Fatal(err)
		}
		before, scan := cutAt(t, whole, markerSOS)
		for what, data := range map[string][]byte{
			"no end":          whole[:len(whole)-2],
			"bytes behind":    append(bytes.Clone(whole), "\xff\xd8\xff\xc0 and more"...),
			"bytes instead":   append(bytes.Clone(whole[:len(whole)-2]), 1, 2, 3),
			"fill bytes":      bytes.Join([][]byte{before, {0xFF, 0xFF}, scan}, nil),
			"stray bytes":     bytes.Join([][]byte{before, {0, 7, 0xFF, 0, 9}, scan}, nil),
			"fill before end": append(bytes.Clone(whole[:len(whole)-2]), 0xFF, 0xFF, markerEOI),
			"other segments":  bytes.Join([][]byte{before, {0xFF, 0xE7, 0, 4, 1, 2, 0xFF, markerTEM, 0xFF, 0xCC, 0, 3, 0}, scan}, nil),
		} {
			if got, err := decodePhoto(data); err != nil || !bytes.Equal(got.Pix, want.Pix) {
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
			if _, err := decodePhoto(whole[:n]); err == nil || !strings.Contains(err.Error(), "ends early") {
				t.Errorf("%s cut to %d of %d bytes: %v", name, n, len(whole), err)
			}
		}
	}
}

func TestJPEGRefuses(t *testing.T) {
	photo := readTestdata(t, "420.jpg")
	_, frame := cutAt(t, photo, markerSOF0)
	at := len(photo) - len(frame)
	_, scan := cutAt(t, photo, markerSOS)
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
	_, second := cutAt(t, restart, markerRST0+1)
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
		"huge":              {changed(at+5, 0xFF, 0xFF, 0xFF, 0xFF), "claims 65535 x 65535"},
		"no sampling":       {changed(at+11, 0x20), "2 x 0"},
		"fraction":          {changed(at+11, 0x22, 0, 2, 0x31), "not supported"},
		"twice":             {changed(at+13, 1), "numbered 1"},
		"no quantisation":   {without(markerDQT), "table"},
		"no code":           {changed(len(photo)-len(scan)+6, 0x32), "table"},
		"no frame":          {without(markerSOF0), "before the frame"},
		"unknown component": {changed(len(photo)-len(scan)+5, 9), "component 9"},
		"component again":   {changed(len(photo)-len(scan)+7, 1), "twice"},
		"frame again":       {bytes.Join([][]byte{photo[:at], frame[:19], frame}, nil), "two frames"},
		"short segment":     {changed(at+2, 0, 1), "shorter than"},
		"wrong restart":     {wrongRestart, "restart marker 1"},
		"nothing":           {[]byte("\xff\xd8\xff\xd9"), "holds no image"},
		"early end":         {append(bytes.Clone(photo[:len(photo)-200]), 0xFF, markerEOI), "ends early"},
	} {
		if _, err := decodePhoto(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// Frames of Motion JPEG come without the tables of the standard, which libjpeg's encoder uses too.
func TestJPEGStandardTables(t *testing.T) {
	whole := readTestdata(t, "420.jpg")
	bare := bytes.Clone(whole)
	for {
		before, from, ok := bytes.Cut(bare, []byte{0xFF, markerDHT})
		if !ok {
			break
		}
		bare = append(bytes.Clone(before), from[binary.BigEndian.Uint16(from):]...)
	}
	want, err := decodePhoto(whole)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodePhoto(bare); err != nil || len(bare) > len(whole)-400 || !bytes.Equal(got.Pix, want.Pix) {
		t.Errorf("%d of %d bytes decode otherwise: %v", len(bare), len(whole), err)
	}
}

func TestHuffmanTable(t *testing.T) {
	counts := [16]uint8{0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1}
	table, err := newHuffTable(counts, []uint8{0x01, 0x1A, 0x00, 0xF0, 0x33})
	if err != nil {
		t.Fatal(err)
	}
	var r entropyData
	// Codes 00, 01, 100, 101000000000, 1010000000010000, then one that is none.
	r.load([]byte{0b00_01_100_1, 0b01000000, 0b000_10100, 0b00000010, 0b000_11111, 0xFF, 0})
	for i, want := range []uint8{0x01, 0x1A, 0x00, 0xF0, 0x33} {
		if got, ok := r.symbol(table); !ok || got != want {
			t.Fatalf("symbol %d is %#x, %v, want %#x", i, got, ok, want)
		}
	}
	if got, ok := r.symbol(table); ok {
		t.Errorf("no code gives %#x", got)
	}
	if _, err := newHuffTable([16]uint8{3}, []uint8{1, 2, 3}); err == nil {
		t.Error("three codes of one bit are accepted")
	}
	if _, err := newHuffTable([16]uint8{1, 1}, []uint8{1}); err == nil {
		t.Error("two codes of one symbol are accepted")
	}
}

// The memory that a file can ask for is bounded by its size: samples, coefficients and pixels.
func FuzzJPEG(f *testing.F) {
	for _, name := range []string{"420", "420progressive", "restart", "separate", "progressivedeep", "ycck", "gray", "extended16bit"} {
		f.Add(readTestdata(f, name+".jpg"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		img, err := decodeJPEG(data)
		if err == nil && (len(img.Pix) != 4*img.Width*img.Height || len(img.Pix) == 0 || len(img.Pix)/4/jpegPixelsPerByte > len(data)) {
			t.Errorf("%d bytes give %d x %d pixels in %d bytes", len(data), img.Width, img.Height, len(img.Pix))
		}
		if w, h, sizeErr := jpegSize(bytes.NewReader(data)); err == nil && (sizeErr != nil || w != img.Width || h != img.Height) {
			t.Errorf("the header gives %d x %d, %v, the image %d x %d", w, h, sizeErr, img.Width, img.Height)
		}
	})
}

// BenchmarkJPEG decodes a photo of 2 megapixels.
func BenchmarkJPEG(b *testing.B) {
	files, _ := filepath.Glob("../../shared/data/desk/images/*.jpg") // the pattern is well-formed
	if len(files) == 0 {
		b.Skip("the capture desk is not beside the repository")
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		b.Fatal(err)
	}
	pixels := 0
	for b.Loop() {
		img, err := decodeJPEG(data)
		if err != nil {
			b.Fatal(err)
		}
		pixels = img.Width * img.Height
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(pixels), "ns/pixel")
}

// TestJPEGTablesFirst reads files whose Huffman tables stand before the frame, as ffmpeg writes them.
func TestJPEGTablesFirst(t *testing.T) {
	var b bytes.Buffer
	if err := stdjpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 24, 16)), nil); err != nil {
		t.Fatal(err)
	}
	var frame, tables, rest []byte
	data := b.Bytes()
	at := 2
	for data[at+1] != markerSOS {
		n := 2 + int(data[at+2])<<8 + int(data[at+3])
		switch data[at+1] {
		case markerSOF0:
			frame = data[at : at+n]
		default:
			tables = append(tables, data[at:at+n]...)
		}
		at += n
	}
	rest = data[at:]
	moved := slices.Concat(data[:2], tables, frame, rest)
	if w, h, err := jpegSize(bytes.NewReader(moved)); err != nil || w != 24 || h != 16 {
		t.Errorf("%d x %d, %v", w, h, err)
	}
	want, err := decodeJPEG(data)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeJPEG(moved); err != nil || !bytes.Equal(got.Pix, want.Pix) {
		t.Errorf("other pixels, %v", err)
	}
}
