package bundler

import (
	"slices"
	"strings"
	"testing"
)

// A focal length may follow the name of a photo, and names may have spaces; other texts are no lists.
func TestPhotosOf(t *testing.T) {
	got := photosOf("\ufeff./a b.jpg 0 500.5\r\n\r\nC:\\x\\c.JPG\nd 1.heic 0\nimages/e.png")
	if want := []string{"./a b.jpg", `C:\x\c.JPG`, "d 1.heic", "images/e.png"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]string{"a.jpg\nb.jpg\nc.j": "a.jpg b.jpg", "a.jpg": "a.jpg", "a.j": ""} {
		if got := strings.Join(photosOf(wholeLines([]byte(text))), " "); got != want {
			t.Errorf("of the head %q: %q", text, got)
		}
	}
	for _, text := range []string{"", "see a.jpg for more\n", "a.jpg\nb.txt\n", "1 2 3\n"} {
		if got := photosOf(text); got != nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}
