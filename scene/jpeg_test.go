package scene

import (
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxDifference returns the largest difference of a channel, and how many samples differ by more than 2.
func maxDifference(t *testing.T, got, want Image) (largest, beyond int) {
	t.Helper()
	if got.Width != want.Width || got.Height != want.Height || len(got.Pix) != len(want.Pix) {
		t.Fatalf("got %d x %d (%d bytes), want %d x %d (%d bytes)", got.Width, got.Height, len(got.Pix), want.Width, want.Height, len(want.Pix))
	}
	for i := range got.Pix {
		d := int(got.Pix[i]) - int(want.Pix[i])
		if d < -2 || d > 2 {
			beyond++
		}
		largest = max(largest, d, -d)
	}
	return largest, beyond
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

// The references are what libjpeg-turbo 3.1 makes of the files, with its default settings. Upsampling and colour
// conversion are equal bit for bit; the inverse transforms round differently by 1, which blue's factor of 1.772 on Cb and the luma together make 3 at worst.
func TestJPEGAgainstLibjpeg(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jpg.png")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d references, %v", len(files), err)
	}
	for _, reference := range files {
		file := strings.TrimSuffix(reference, ".png")
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jpg"), func(t *testing.T) {
			f, err := os.Open(reference)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			want, err := png.Decode(f)
			if err != nil {
				t.Fatal(err)
			}
			got := decodeFile(t, file)
			largest, beyond := maxDifference(t, got, fromImage(want))
			t.Logf("largest difference %d, %d of %d samples beyond 2", largest, beyond, len(got.Pix))
			if largest > 3 || 1000*beyond > len(got.Pix) {
				t.Errorf("largest difference %d, want at most 3; %d samples beyond 2, want at most 1 in 1000", largest, beyond)
			}
		})
	}
}
