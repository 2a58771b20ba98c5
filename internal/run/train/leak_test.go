package train

import (
	"bytes"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/runtest"
	"vksplat/scene"
	"vksplat/scene/scenetest"
	"vksplat/scene/synth"
)

// leakScene writes COLMAP captures of one scene that differ in nothing but their held-out photos.
type leakScene struct {
	*synth.Capture
	cams    []scene.Camera
	points  []scene.Point
	tracked bool
	held    []int // numbers of photos
}

// What becomes of the held-out photos.
const (
	asIs    = iota
	changed // inverted and moved, and the reconstruction has more points from them
	gone    // the capture never had them, nor the points that it owes to them
)

func newLeakScene(t *testing.T, tracked bool, held []int) *leakScene {
	t.Helper()
	s, err := synth.New(synth.Options{Images: 16, Width: 64, Height: 64, Points: 900, Open: true})
	if err != nil {
		t.Fatal(err)
	}
	return &leakScene{s, s.Cameras(), s.Points(), tracked, held}
}

// track returns the photos that observed a point: two to four, none of every fiftieth, as of a LiDAR.
func (s *leakScene) track(point int) (photos []int) {
	for i := range s.cams {
		k := (i + point) % len(s.cams)
		if s.tracked && point%50 > 0 && len(photos) < 2+point%3 && s.cams[k].Sees(s.points[point].Pos) {
			photos = append(photos, k)
		}
	}
	return photos
}

// write writes a capture and returns its folder.
func (s *leakScene) write(t *testing.T, held int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var cameras, images, points strings.Builder
	for k, cam := range s.cams {
		picture := s.Photo(k, 1)
		if slices.Contains(s.held, k) {
			if held == gone {
				continue
			}
			if held == changed {
				cam.T[0] += 3
				invert(picture)
			}
		}
		fmt.Fprintf(&cameras, "%d PINHOLE %d %d %v %v %v %v\n", k+1, cam.Width, cam.Height, cam.Fx, cam.Fy, cam.Cx,
			cam.Cy)
		q := cam.Quat()
		fmt.Fprintf(&images, "%d %v %v %v %v %v %v %v %d %s\n\n", k+1, q[0], q[1], q[2], q[3], cam.T[0], cam.T[1],
			cam.T[2], k+1, cam.Name)
		scenetest.Put(t, filepath.Join(dir, "images", cam.Name), scenetest.PngBytes(t, picture))
	}
	for i, p := range s.points {
		track := s.track(i)
		if held == gone && s.tracked && len(track) > 0 {
			track = slices.DeleteFunc(track, func(k int) bool { return slices.Contains(s.held, k) })
			if len(track) < 2 {
				continue
			}
		}
		writePoint(&points, i, p, track)
	}
	for i := range 300 {
		if held == changed && s.tracked {
			p := scene.Point{Pos: [3]float64{0.01 * float64(i), 0.3, 5}, Color: [3]uint8{255, 0, 255}}
			// a photo that is trained on, several times over, is one photo
			writePoint(&points, 10_000+i, p, []int{s.held[i%len(s.held)], 5, 5, s.held[(i+1)%len(s.held)]})
		}
	}
	for name, text := range map[string]*strings.Builder{"cameras": &cameras, "images": &images, "points3D": &points} {
		scenetest.Put(t, filepath.Join(dir, "sparse", "0", name+".txt"), []byte(text.String()))
	}
	return dir
}

func writePoint(b *strings.Builder, id int, p scene.Point, track []int) {
	fmt.Fprintf(b, "%d %v %v %v %d %d %d 0.5", id, p.Pos[0], p.Pos[1], p.Pos[2], p.Color[0], p.Color[1], p.Color[2])
	for _, k := range track {
		fmt.Fprintf(b, " %d 0", k+1)
	}
	b.WriteString("\n")
}

func invert(m *image.RGBA) {
	for i := range m.Pix {
		if i%4 < 3 {
			m.Pix[i] = 255 - m.Pix[i]
		}
	}
}

// model trains a capture and returns the model's file.
func (s *leakScene) model(t *testing.T, held int, set func(o *Options)) []byte {
	t.Helper()
	o := NewOptions()
	o.Scene, o.Out, o.Progress = s.write(t, held), filepath.Join(t.TempDir(), "out"), meter.None
	o.Config.Iterations, o.Config.NumDownscales, o.Checkpoints.Off = 30, 0, true
	if held != gone {
		o.Eval, o.TestList = true, filepath.Join(t.TempDir(), "held.txt")
		var names []string
		for _, k := range s.held {
			names = append(names, s.cams[k].Name)
		}
		scenetest.Put(t, o.TestList, []byte(strings.Join(names, "\n")))
	}
	set(o)
	if _, err := Do(cli.New(nil, io.Discard, io.Discard), o, nil); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(o.Out, "point_cloud", "*", "point_cloud.ply"))
	if err != nil || len(files) != 1 {
		t.Fatalf("models %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestHeldOutPhotosLeakNothing wants the same model, byte for byte, whatever the held-out photos show, wherever they
// stand, and if the capture never had them.
func TestHeldOutPhotosLeakNothing(t *testing.T) {
	runtest.NeedDevice(t)
	splits := map[string][]int{"std": {0, 8}, "stretch": {8, 9, 10, 11},
		"few": {0, 1, 2, 3, 6, 7, 8, 9, 11, 12, 14, 15}}
	depths := func(o *Options) { o.Depth.Points, o.Depth.Init = true, true }
	for _, x := range []struct {
		name, split string
		tracked     bool
		set         func(o *Options)
	}{
		{"std", "std", true, func(*Options) {}},
		{"stretch", "stretch", true, func(*Options) {}},
		{"few", "few", true, func(*Options) {}},
		{"std without tracks", "std", false, func(*Options) {}},
		{"few without tracks", "few", false, func(*Options) {}},
		{"known depths", "stretch", true, depths},
		{"random points", "std", true, func(o *Options) { o.Init.Kind, o.Init.Points = "random", 500 }},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := newLeakScene(t, x.tracked, splits[x.split])
			want := s.model(t, asIs, x.set)
			if !bytes.Equal(want, s.model(t, changed, x.set)) {
				t.Error("changed held-out photos change the model")
			}
			if !bytes.Equal(want, s.model(t, gone, x.set)) {
				t.Error("a capture without the held-out photos gives another model")
			}
		})
	}
}
