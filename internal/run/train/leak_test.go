package train

import (
	"bytes"
	"encoding/binary"
	"image"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/runtest"
	"vksplat/scene"
	"vksplat/scene/scenetest"
	"vksplat/scene/synth"
)

// leakScene writes COLMAP captures of one scene that differ in nothing but their held-out photos.
type leakScene struct {
	pictures []*image.RGBA
	cams     []scene.Camera
	points   []scene.Point
	tracked  int   // photos that observed a point at least; 0: the model has no tracks
	held     []int // numbers of photos
}

// What becomes of the held-out photos.
const (
	asIs    = iota
	changed // inverted and moved, and the reconstruction has more points from them
	gone    // the capture never had them, nor the points that it owes to them
)

// leakCapture draws the photos once for all captures.
var leakCapture = sync.OnceValues(func() (leakScene, error) {
	s, err := synth.New(synth.Options{Images: 16, Width: 40, Height: 40, Points: 900, Open: true})
	if err != nil {
		return leakScene{}, err
	}
	drawn := leakScene{cams: s.Cameras(), points: s.Points()}
	for i := range drawn.cams {
		drawn.pictures = append(drawn.pictures, s.Photo(i, 1))
	}
	return drawn, nil
})

func newLeakScene(t *testing.T, tracked int, held []int) *leakScene {
	t.Helper()
	s := must.Get(leakCapture())(t)
	s.tracked, s.held = tracked, held
	return &s
}

// track returns the photos that observed a point: two to four, none of every fiftieth, as of a LiDAR.
func (s *leakScene) track(point int) (photos []int) {
	for i := range s.cams {
		k := (i + point) % len(s.cams)
		if s.tracked > 0 && point%50 > 0 && len(photos) < s.tracked+point%3 && s.cams[k].Sees(s.points[point].Pos) {
			photos = append(photos, k)
		}
	}
	return photos
}

// observed is a point of a reconstruction and the numbers of the photos that observed it.
type observed struct {
	id uint64
	scene.Point
	photos []int
}

// reconstruction returns the points of a capture.
func (s *leakScene) reconstruction(held int) (list []observed) {
	isHeld := func(k int) bool { return slices.Contains(s.held, k) }
	for i, p := range s.points {
		track := s.track(i)
		if held == gone && slices.ContainsFunc(track, isHeld) {
			if track = slices.DeleteFunc(track, isHeld); len(track) < 2 {
				continue
			}
		}
		list = append(list, observed{uint64(i + 1), p, track})
	}
	for i := range 300 {
		if held == changed && s.tracked > 0 {
			p := scene.Point{Pos: s.points[i].Pos, Color: [3]uint8{255, 0, 255}}
			// a photo that is trained on, several times over, is one photo
			track := []int{s.held[i%len(s.held)], 5, 5, s.held[(i+1)%len(s.held)]}
			list = append(list, observed{uint64(10_000 + i), p, track})
		}
	}
	return list
}

// write writes a capture and returns its folder.
func (s *leakScene) write(t *testing.T, held int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	le, points := binary.LittleEndian, s.reconstruction(held)
	var cameras, images, cloud []byte
	n := uint64(0)
	for k, cam := range s.cams {
		picture := s.pictures[k]
		if slices.Contains(s.held, k) {
			if held == gone {
				continue
			}
			if held == changed {
				cam.T[0] += 3
				picture = inverted(picture)
			}
		}
		scenetest.Put(t, filepath.Join(dir, "images", cam.Name), scenetest.PngBytes(t, picture))
		n++
		cameras = le.AppendUint32(le.AppendUint32(cameras, uint32(k+1)), 1) // PINHOLE
		cameras = le.AppendUint64(le.AppendUint64(cameras, uint64(cam.Width)), uint64(cam.Height))
		cameras = scenetest.AppendFloats(cameras, cam.Fx, cam.Fy, cam.Cx, cam.Cy)
		q := cam.Quat()
		images = scenetest.AppendFloats(le.AppendUint32(images, uint32(k+1)), append(q[:], cam.T[:]...)...)
		images = append(append(le.AppendUint32(images, uint32(k+1)), cam.Name...), 0)
		var seen []byte
		for _, p := range points {
			if slices.Contains(p.photos, k) {
				u, v, _, _ := s.cams[k].Project(p.Pos, 0, math.Inf(1))
				seen = le.AppendUint64(scenetest.AppendFloats(seen, u+0.1, v), p.id)
			}
		}
		images = append(le.AppendUint64(images, uint64(len(seen)/24)), seen...)
	}
	for _, p := range points {
		cloud = append(scenetest.AppendFloats(le.AppendUint64(cloud, p.id), p.Pos[:]...), p.Color[:]...)
		cloud = le.AppendUint64(scenetest.AppendFloats(cloud, 0.5), uint64(len(p.photos)))
		for _, k := range p.photos {
			cloud = le.AppendUint32(le.AppendUint32(cloud, uint32(k+1)), 0)
		}
	}
	model := filepath.Join(dir, "sparse", "0")
	scenetest.Put(t, filepath.Join(model, "cameras.bin"), append(le.AppendUint64(nil, n), cameras...))
	scenetest.Put(t, filepath.Join(model, "images.bin"), append(le.AppendUint64(nil, n), images...))
	scenetest.Put(t, filepath.Join(model, "points3D.bin"), append(le.AppendUint64(nil, uint64(len(points))), cloud...))
	return dir
}

func inverted(m *image.RGBA) *image.RGBA {
	n := image.NewRGBA(m.Rect)
	for i, x := range m.Pix {
		if n.Pix[i] = 255 - x; i%4 == 3 {
			n.Pix[i] = x
		}
	}
	return n
}

// model trains a capture and returns the model's file.
func (s *leakScene) model(t *testing.T, held int, set func(o *Options)) []byte {
	t.Helper()
	if held != asIs {
		t.Setenv("VKSPLAT_VALIDATE", "") // the layer has seen these programs
	}
	o := NewOptions()
	o.Scene, o.Out, o.Progress = s.write(t, held), filepath.Join(t.TempDir(), "out"), meter.None
	o.Config.Iterations, o.Config.NumDownscales, o.Checkpoints.Off = 20, 0, true
	if held != gone {
		o.Eval, o.TestList = true, filepath.Join(t.TempDir(), "held.txt")
		var names []string
		for _, k := range s.held {
			names = append(names, s.cams[k].Name)
		}
		scenetest.Put(t, o.TestList, []byte(strings.Join(names, "\n")))
	}
	set(o)
	must.Get(Do(cli.New(nil, io.Discard, io.Discard), o))(t)
	files, err := filepath.Glob(filepath.Join(o.Out, "point_cloud", "*", "point_cloud.ply"))
	if err != nil || len(files) != 1 {
		t.Fatalf("models %v, %v", files, err)
	}
	data := must.Get(os.ReadFile(files[0]))(t)
	return data
}

// TestHeldOutPhotosLeakNothing wants the same model, byte for byte, whatever the held-out photos show, wherever they
// stand, and if the capture never had them.
func TestHeldOutPhotosLeakNothing(t *testing.T) {
	runtest.NeedDevice(t)
	splits := map[string][]int{"std": {0, 8}, "stretch": {8, 9, 10, 11},
		"few": {0, 1, 2, 3, 6, 7, 8, 9, 11, 12, 14, 15}}
	depths := func(o *Options) { o.Depth.Points, o.Depth.Init = true, true }
	plain := func(*Options) {}
	for _, x := range []struct {
		name, split string
		tracked     int
		set         func(o *Options)
	}{
		{"std", "std", 2, plain},
		{"stretch", "stretch", 2, plain},
		{"few", "few", 2, plain},
		{"std without tracks", "std", 0, plain},
		{"few without tracks", "few", 0, plain},
		{"tracks of one photo", "std", 1, plain},
		{"known depths", "stretch", 2, depths},
		{"random points", "std", 2, func(o *Options) { o.Init.Kind, o.Init.Points = "random", 500 }},
		{"exposure", "std", 2, func(o *Options) { o.Config.Exposure = true }},
		{"refined poses", "stretch", 2, func(o *Options) {
			o.Config.RefineCameras, o.Config.PoseStart, o.Config.PoseGain = true, 5, 0
		}},
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
