package scene

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// textModelOf writes the tiny capture's model as text, with the line ends given, and
// removes the binary one.
func textModelOf(t testing.TB, root, eol string, cams []Camera, points []Point) {
	t.Helper()
	var cameras, images, cloud strings.Builder
	line := func(b *strings.Builder, format string, args ...any) { fmt.Fprintf(b, format+eol, args...) }
	line(&cameras, "# Camera list")
	line(&images, "# IMAGE_ID, QW, QX, QY, QZ, TX, TY, TZ, CAMERA_ID, NAME")
	line(&images, "")
	line(&cloud, "# 3D point list")
	for i, c := range cams {
		line(&cameras, "%d PINHOLE %d %d %v %v %v %v", i+1, c.Width, c.Height, c.Fx, c.Fy, c.Cx, c.Cy)
		q := c.Quat()
		line(&images, "%d %v %v %v %v %v %v %v %d %s", i+1, q[0], q[1], q[2], q[3], c.T[0], c.T[1], c.T[2], i+1, c.Name)
		line(&images, "%s", []string{"", "1.5 2.5 -1 3 4 7", "#"}[i%3])
	}
	for i, p := range points {
		line(&cloud, "%d %v %v %v %d %d %d 0.5 1 2 3 4", i, p.Pos[0], p.Pos[1], p.Pos[2], p.Color[0], p.Color[1], p.Color[2])
	}
	dir := filepath.Join(root, "sparse", "0")
	for name, b := range map[string]*strings.Builder{"cameras": &cameras, "images": &images, "points3D": &cloud} {
		if err := os.Remove(filepath.Join(dir, name+".bin")); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, name+".txt"), []byte(b.String()))
	}
}

func TestTextModel(t *testing.T) {
	for name, eol := range map[string]string{"lf": "\n", "crlf": "\r\n"} {
		t.Run(name, func(t *testing.T) {
			root := tinyCapture(t)
			want := mustLoad(t, root, anyModel())
			textModelOf(t, root, eol, tinyCameras(), tinyPoints())
			got := mustLoad(t, root, anyModel())
			if !got.text || !reflect.DeepEqual(got.Points, want.Points) || len(got.Warnings) > 0 {
				t.Errorf("points %v, warnings %v", got.Points, got.Warnings)
			}
			if !slices.Equal(got.Cameras, want.Cameras) {
				t.Errorf("cameras %v, want %v", got.Cameras, want.Cameras)
			}
		})
	}
}

func TestBinaryWinsOverText(t *testing.T) {
	root := tinyCapture(t)
	dir := filepath.Join(root, "sparse", "0")
	for _, name := range modelFiles {
		put(t, filepath.Join(dir, name+".txt"), []byte("no model"))
	}
	for _, name := range []string{"rigs.bin", "frames.bin", "rigs.txt", "frames.txt"} {
		put(t, filepath.Join(dir, name), []byte("anything"))
	}
	mustLoad(t, root, anyModel())
	// A binary model that is not whole gives way to a text that is.
	removed("sparse/0/points3D.bin")(t, root)
	_, err := Load(root, anyModel())
	checkRefusal(t, err, []string{"cameras.txt", "line 1"}, "damaged", nil)
}

func TestTextImageNames(t *testing.T) {
	text := "7 1 0 0 0 1 2 3 4 a photo  of me.jpg \n\n8 1 0 0 0 1 2 3 4 sub\\b.jpg\n5 6 -1 7 8 -1 9 10 -1 11 12 -1\n" + "9 1 0 0 0 1 2 3 4 last.png"
	views, err := parseTextImages(strings.NewReader(text))
	if err != nil || len(views) != 3 || views[0].name != "a photo  of me.jpg" || views[1].name != `sub\b.jpg` || views[2].name != "last.png" || views[2].id != 9 || views[1].camera != 4 {
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
		{"cameras", "1 PINHOLE 10 10 1 2 3 nan", "not finite"},
		{"cameras", "1 PINHOLE 10 10 1 2 3 1e999", "not finite"},
		{"cameras", "1 PINHOLE 10 0 1 2 3 4", "size 10 x 0"},
		{"cameras", "1 PINHOLE 10 99999999999 1 2 3 4", "size 10 x 99999999999"},
		{"cameras", "x PINHOLE 10 10 1 2 3 4", `"x" is no camera id`},
		{"cameras", "1 PINHOLE 9 9 1 2 3 4\n1 PINHOLE 9 9 1 2 3 4", "line 2: camera 1 is there twice"},
		{"cameras", "1 PINHOLE 9 9 1 2 3 4\x00", "line 1 is no text"},
		{"images", "1 1 0 0 0 1 2 3 4", "the name of the image"},
		{"images", "1 1 0 0 zero 1 2 3 4 a.jpg", `"zero" is no component of a rotation`},
		{"images", "1 1 0 0 0 1 2 3 4 a.jpg\n2 1 0 0 0 1 2 3 4 b.jpg\n", "line 2 is an image too"},
		{"images", "1 1 0 0 0 1 2 3 4 " + strings.Repeat("x", maxLine), "too long"},
		{"points", "1 2 3 4 5 6 256 0", `"256" is no colour`},
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
	return io.MultiReader(strings.NewReader("1 1 0 0 0 1 2 3 4 a.jpg\n"), io.LimitReader(endless("1.25 2.5 -1 "), int64(12*n)), strings.NewReader("\n2 1 0 0 0 1 2 3 4 b.jpg\n\n"))
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
	var views []colmapImage
	var err error
	grown := heapGrowth(func() { views, err = parseTextImages(observations(1 << 20)) })
	if err != nil || len(views) != 2 || views[1].name != "b.jpg" {
		t.Errorf("%+v, %v", views, err)
	}
	if grown > 1<<18 {
		t.Errorf("allocated %d bytes", grown)
	}
	track := io.MultiReader(strings.NewReader("1 2 3 4 5 6 7 0.5 "), io.LimitReader(endless("1 2 "), 4<<20), strings.NewReader("\n2 2 3 nan 5 6 7 0.5\n"))
	points, bad, err := parseTextPoints(track)
	if err != nil || bad != 1 || !slices.Equal(points, []Point{{[3]float64{2, 3, 4}, [3]uint8{5, 6, 7}}}) {
		t.Errorf("%v, %d, %v", points, bad, err)
	}
}

func addTextSeeds(f *testing.F, file string) {
	root := tinyCapture(f)
	textModelOf(f, root, "\n", tinyCameras(), tinyPoints())
	data, err := os.ReadFile(filepath.Join(root, "sparse", "0", file))
	if err != nil {
		f.Fatal(err)
	}
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
			if err == nil && !inRange(p.Pos) {
				t.Errorf("%v", p)
			}
		}
	})
}
