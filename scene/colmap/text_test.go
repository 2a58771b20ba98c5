package colmap

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

func TestTextImageNames(t *testing.T) {
	text := "7 1 0 0 0 1 2 3 4 a photo  of me.jpg \n\n8 1 0 0 0 1 2 3 4 sub\\b.jpg\n5 6 -1 7 8 -1 9 10 -1 11 12 -1\n" +
		"9 1 0 0 0 1 2 3 4 last.png"
	views, err := parseTextImages(strings.NewReader(text))
	if err != nil || len(views) != 3 || views[0].Name != "a photo  of me.jpg" || views[1].Name != `sub\b.jpg` ||
		views[2].Name != "last.png" || views[2].Id != 9 || views[1].Camera != 4 {
		t.Errorf("%+v, %v", views, err)
	}
	if n := countTextImages(strings.NewReader(text)); n != 3 {
		t.Errorf("counted %d", n)
	}
}

func TestBadText(t *testing.T) {
	parsers := map[string]func(r io.Reader) error{
		"cameras": func(r io.Reader) error { _, err := parseTextCameras(r); return err },
		"images":  func(r io.Reader) error { _, err := parseTextImages(r); return err },
		"points":  func(r io.Reader) error { _, _, err := parseTextPoints(r); return err },
	}
	for _, test := range []struct{ file, text, want string }{
		{"cameras", "1 PINHOLE 10 10 1 2 3", "line 1: the line ends where parameter"},
		{"cameras", "#\n\n1 PINHOLE 10 10 1 2 3 4 5", "line 3: camera 1 has more than the 4 parameters"},
		{"cameras", "1 PINHOL 10 10 1 2 3 4", `model "PINHOL", which COLMAP does not define`},
		{"cameras", "1 POLYNOMIAL 10 10 1 2 3 4", "which COLMAP does not define"},
		{"cameras", "1 PINHOLE 10 10 1 2 3 none", `"none" is not a parameter`},
		{"cameras", "1 PINHOLE 10 0 1 2 3 4", "size 10 x 0"},
		{"cameras", "1 PINHOLE 10 99999999999 1 2 3 4", "size 10 x 99999999999"},
		{"cameras", "x PINHOLE 10 10 1 2 3 4", `"x" is not a camera id`},
		{"cameras", "1 PINHOLE 9 9 1 2 3 4\n1 PINHOLE 9 9 1 2 3 4", "line 2: camera 1 occurs twice"},
		{"cameras", "1 PINHOLE 9 9 1 2 3 4\x00", "line 1 is not text"},
		{"images", "1 1 0 0 0 1 2 3 4", "the name of the image"},
		{"images", "1 1 0 0 zero 1 2 3 4 a.jpg", `"zero" is not a component of a rotation`},
		{"images", "1 1 0 0 0 1 2 3 4 a.jpg\n2 1 0 0 0 1 2 3 4 b.jpg\n", "line 2 is an image too"},
		{"images", "1 1 0 0 0 1 2 3 4 " + strings.Repeat("x", maxLine), "too long"},
		{"points", "1 2 3 4 5 6 256 0", `"256" is not a colour`},
		{"points", "1 2 3 4 5 6 7", "reprojection error"},
	} {
		err := parsers[test.file](strings.NewReader(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.60q: %v, want %q", test.text, err, test.want)
		}
	}
}

// observations is a stream of an image with n 2D points in one line.
func observations(n int) io.Reader {
	return io.MultiReader(strings.NewReader("1 1 0 0 0 1 2 3 4 a.jpg\n"),
		io.LimitReader(endless("1.25 2.5 -1 "), int64(12*n)), strings.NewReader("\n2 1 0 0 0 1 2 3 4 b.jpg\n\n"))
}

type endless string

func (e endless) Read(b []byte) (int, error) {
	n := 0
	for n+len(e) <= len(b) {
		n += copy(b[n:], e)
	}
	if n == 0 {
		return copy(b, e), nil
	}
	return n, nil
}

// A line of 12 MB is passed over in the memory of a few pages.
func TestLongLines(t *testing.T) {
	var views []Image
	var err error
	grown := scenetest.HeapGrowth(func() { views, err = parseTextImages(observations(1 << 20)) })
	if err != nil || len(views) != 2 || views[1].Name != "b.jpg" {
		t.Errorf("%+v, %v", views, err)
	}
	if grown > 1<<18 {
		t.Errorf("allocated %d bytes", grown)
	}
	track := io.MultiReader(strings.NewReader("1 2 3 4 5 6 7 0.5 "), io.LimitReader(endless("1 2 "), 4<<20),
		strings.NewReader("\n2 2 3 nan 5 6 7 0.5\n"))
	points, bad, err := parseTextPoints(track)
	if err != nil || bad != 1 ||
		!slices.Equal(points, []scene.Point{{Pos: [3]float64{2, 3, 4}, Color: [3]uint8{5, 6, 7}}}) {
		t.Errorf("%v, %d, %v", points, bad, err)
	}
}

func addTextSeeds(f *testing.F, file string) {
	root := tinyModel(f)
	scenetest.TextModelOf(f, root, "\n", scenetest.TinyCameras(), scenetest.TinyPoints())
	data := must.Get(os.ReadFile(filepath.Join(root, "sparse", "0", file)))(f)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte("\xef\xbb\xbf#\r\n\r\n"))
}

func FuzzTextCameras(f *testing.F) {
	addTextSeeds(f, "cameras.txt")
	f.Fuzz(func(t *testing.T, data []byte) {
		if cams, err := parseTextCameras(bytes.NewReader(data)); err == nil {
			checkCameras(t, cams)
		}
	})
}

func FuzzTextImages(f *testing.F) {
	addTextSeeds(f, "images.txt")
	f.Fuzz(func(t *testing.T, data []byte) {
		if views, err := parseTextImages(bytes.NewReader(data)); err == nil {
			checkImages(t, views)
			if n := countTextImages(bytes.NewReader(data)); n != uint64(len(views)) {
				t.Errorf("counted %d of %d images", n, len(views))
			}
		}
	})
}

func FuzzTextPoints(f *testing.F) {
	addTextSeeds(f, "points3D.txt")
	f.Fuzz(func(t *testing.T, data []byte) {
		points, _, err := parseTextPoints(bytes.NewReader(data))
		for _, p := range points {
			if err == nil && !scene.InRange(p.Pos) {
				t.Errorf("%v", p)
			}
		}
	})
}
