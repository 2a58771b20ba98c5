//go:build unix

package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/capture/capturetest"
	"vksplat/internal/run/output"
	"vksplat/internal/run/reconstruct"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline"
	"vksplat/pipeline/features"
	"vksplat/scene/mapping"
	"vksplat/scene/scenetest"
	"vksplat/scene/twoview"
)

// drawn gives options for photos whose cameras this program finds.
func drawn(t *testing.T, n int) *Options {
	t.Helper()
	runtest.NeedDevice(t)
	dir := t.TempDir()
	must.Do(t, capturetest.Photos(dir, n, 200, 150, capturetest.Pinhole))
	o := optionsOf(t, dir)
	o.Mapper, o.Again = Auto, "vksplat capture again"
	return o
}

// modelBytes reads the model that training would read.
func modelBytes(t *testing.T, o *Options) string {
	t.Helper()
	var b bytes.Buffer
	for _, name := range []string{"cameras.bin", "images.bin", "points3D.bin"} {
		b.Write(must.Get(os.ReadFile(o.in(modelFolder, name)))(t))
	}
	return b.String()
}

// TestOwn finds cameras without COLMAP; what earlier calls stored is used, or made again where it is damaged.
func TestOwn(t *testing.T) {
	o := drawn(t, 8)
	t.Setenv("PATH", t.TempDir()) // no COLMAP there
	said := must.Get(run(t.Context(), o))(t)
	if !strings.Contains(said, "cameras:  8 of 8 photos (100 %)") {
		t.Fatal(said)
	}
	if r := reportOf(t, o); r.Registered != 8 || r.Colmap != "" || r.Coverage == "" {
		t.Errorf("the report is %+v", r)
	}
	want := modelBytes(t, o)
	for name, damage := range map[string]func(data []byte) []byte{
		featuresFile: func(data []byte) []byte { return data[:len(data)/2] },
		matchesFile:  func(data []byte) []byte { data[len(data)/2] ^= 1; return data },
	} {
		path := o.in(name)
		must.Do(t, os.WriteFile(path, damage(must.Get(os.ReadFile(path))(t)), 0o666))
		must.Do(t, os.RemoveAll(o.in(componentsFolder)))
		said := must.Get(run(t.Context(), o))(t)
		if !strings.Contains(said, path+" is made again: ") {
			t.Errorf("damage of %s: %s", name, said)
		}
		if modelBytes(t, o) != want {
			t.Errorf("after damage of %s the model is another", name)
		}
	}
	if said := must.Get(run(t.Context(), o))(t); !strings.Contains(said, "mapping:  done before") {
		t.Error(said)
	}
}

// TestOwnStopped stops each stage by Ctrl-C; the same command goes on to the same bytes.
func TestOwnStopped(t *testing.T) {
	o := drawn(t, 8)
	must.Get(run(t.Context(), o))(t)
	want := modelBytes(t, o)
	for stage, file := range map[string]string{stageFeatures: featuresFile, stageMatches: matchesFile,
		stageMapping: componentsFolder} {
		must.Do(t, os.RemoveAll(o.in(file)))
		_, err := runUntil(t, *o, stage)
		if !errors.Is(err, fault.ErrInterrupted) || !strings.Contains(fault.Hint(err), o.Again) {
			t.Errorf("%s: stopped: %v; %s", stage, err, fault.Hint(err))
		}
		if r := reportOf(t, o); r.ExitCode != fault.ExitInterrupted {
			t.Errorf("%s: stopped: the report has exit code %d", stage, r.ExitCode)
		}
		must.Get(run(t.Context(), o))(t)
		if modelBytes(t, o) != want {
			t.Errorf("%s: after a stop the model is another", stage)
		}
	}
}

// watcher looks at every round.
type watcher struct {
	t      *testing.T
	stages []Stage
	counts []int // of cameras
	last   bool
}

func (w *watcher) Stage(s *Stage) { w.stages = append(w.stages, *s) }

func (w *watcher) Growing(look func() *reconstruct.Sketch, last bool) {
	s := look()
	w.counts, w.last = append(w.counts, len(s.Cameras)), last
	if len(s.Cameras) < 2 || len(s.Points) < 50 || s.Cameras[0].Fx < 100 || s.Points[0].Color == [3]uint8{} {
		w.t.Errorf("a model of %d cameras, %d points: %+v", len(s.Cameras), len(s.Points), s.Cameras)
	}
}

// TestWatched wants a watcher to see each stage and a model that grows, and to change no byte.
func TestWatched(t *testing.T) {
	o := drawn(t, 12)
	must.Get(run(t.Context(), o))(t)
	want := modelBytes(t, o)
	w := &watcher{t: t}
	o.Watch = w
	must.Do(t, os.RemoveAll(o.in(matchesFile)))
	must.Get(run(t.Context(), o))(t)
	if modelBytes(t, o) != want {
		t.Error("watched, the model is another")
	}
	if n := len(w.counts); n < 2 || !w.last || w.counts[0] >= w.counts[n-1] || w.counts[n-1] != 12 {
		t.Errorf("the models have %v cameras; the last one is the last: %v", w.counts, w.last)
	}
	var text strings.Builder
	for _, s := range w.stages {
		if s.Done {
			fmt.Fprintf(&text, "%s %s\n", s.Name, s.Text)
		} else if s.Total > 0 && !(s.ETA >= 0) && s.Step > 0 {
			t.Errorf("no time left: %+v", s)
		}
	}
	if said := text.String(); !strings.Contains(said, "features done before\nmatches 6") ||
		!strings.Contains(said, "mapping 12 of 12 photos, ") {
		t.Error(said)
	}
}

// TestStored reads back what was stored, and refuses what is damaged.
func TestStored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := reconstruct.Features{Name: "a.jpg", Width: 7, Height: 5, Colours: []byte{1, 2, 3, 4, 5, 6}}
	f.Points = []features.Keypoint{{X: 1.5, Y: -2, Scale: 3, Angle: 4}, {X: 5}}
	f.Descriptors = bytes.Repeat([]byte{9, 8}, features.DescriptorBytes)
	none := reconstruct.Features{Name: "b.jpg"}
	pair := mapping.Pair{A: 3, B: 1, Matches: [][2]int32{{1, 2}, {3, 4}}}
	pair.Relation = twoview.Relation{Kind: twoview.Planar, F: [9]float64{8: 1}, T: [3]float64{0, 2, 0}, Angle: 0.5,
		Inliers: []int32{1}}
	must.Do(t, store(path, func(put func(piece []byte) error) error {
		return errors.Join(put(must.Get(pieceOf(&f))(t)), put(must.Get(pieceOf(&none))(t)))
	}))
	found := must.Get(storedFeatures(path))(t)
	if len(found) != 2 || !slices.Equal(found[0].Points, f.Points) || found[0].Name != f.Name ||
		found[1].Name != "b.jpg" || !bytes.Equal(found[0].Colours, f.Colours) ||
		!bytes.Equal(must.Get(found[0].AllDescriptors())(t), f.Descriptors) {
		t.Errorf("got %+v", found)
	}
	for i, file := range [][]byte{must.Get(os.ReadFile(path))(t), nil} {
		if i == 1 {
			must.Do(t, storePairs(path, []mapping.Pair{pair, {A: 1}}))
			file = must.Get(os.ReadFile(path))(t)
			if list := must.Get(storedPairs(path))(t); len(list) != 2 || !reflect.DeepEqual(list[0], pair) {
				t.Errorf("got %+v", list)
			}
		}
		for k := range file {
			bad := slices.Clone(file)
			bad[k] ^= 4
			for _, data := range [][]byte{file[:k], bad} {
				must.Do(t, os.WriteFile(path, data, 0o666))
				if err := stored(path, func([]byte, int64) error { return nil }); err == nil {
					t.Fatalf("byte %d of %d is damaged", k, len(file))
				}
			}
		}
		// what is whole, but of something else
		must.Do(t, store(path, func(put func(piece []byte) error) error {
			return put([]byte("\xff\xff\xff\x7f longer text"))
		}))
		_, bad := storedPairs(path)
		if _, err := storedFeatures(path); err == nil || bad == nil {
			t.Error("text is taken for features or pairs")
		}
	}
}

// TestOwnLittleRAM refuses more photos than the RAM that may be used holds, before any is gone through.
func TestOwnLittleRAM(t *testing.T) {
	o := drawn(t, 3)
	w := &own{mapper: &mapper{base: &base{console: cli.New(nil, io.Discard, io.Discard), o: o}}}
	must.Do(t, w.open())
	defer w.close()
	if _, err := w.fits(1 << 20); !errors.Is(err, pipeline.ErrLittleRAM) ||
		!strings.Contains(fault.Hint(err), "max-ram") {
		t.Errorf("a million photos: %v", err)
	}
	if memory, err := w.fits(100); err != nil || memory < 1<<20 {
		t.Errorf("100 photos: %d bytes, %v", memory, err)
	}
}

// TestOwnMissing says why photos have no camera.
func TestOwnMissing(t *testing.T) {
	o := drawn(t, 8)
	must.Do(t, writePhoto(filepath.Join(o.Inputs[0], "plain.png"), 200, 150, 0))
	noise := rand.New(rand.NewPCG(1, 2))
	writePicture(t, filepath.Join(o.Inputs[0], "other.png"), 200, 150,
		func(int, int) uint8 { return uint8(noise.Uint32()) })
	said := must.Get(run(t.Context(), o))(t)
	why := map[string]string{}
	for _, d := range reportOf(t, o).Dropped {
		why[d.Photo] = d.Why
	}
	if len(why) != 2 || !strings.Contains(why["plain.png"], "0 features") && !strings.Contains(why["plain.png"], "blurred") ||
		!strings.Contains(why["other.png"], "overlap") {
		t.Errorf("dropped are %v:\n%s", why, said)
	}
}

// TestOwnRefuses gives photos whose cameras cannot be found, and wants words that help.
func TestOwnRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		n, w, h int
		pixel   func(i, x, y int) uint8
		hint    string
	}{
		"black":     {4, 100, 80, func(int, int, int) uint8 { return 0 }, "most photos are dark"},
		"grey":      {4, 100, 80, func(int, int, int) uint8 { return 128 }, "with detail"},
		"few":       {2, 100, 80, func(int, int, int) uint8 { return 128 }, "at least 3 photos"},
		"tiny":      {3, 16, 12, func(i, x, y int) uint8 { return uint8(200 + i + x*y) }, "with detail"},
		"alike":     {4, 120, 90, func(_, x, y int) uint8 { return scatter(0, x, y) }, "from different places"},
		"unrelated": {4, 120, 90, scatter, "overlap by two thirds"},
	} {
		runtest.NeedDevice(t)
		o := optionsOf(t, t.TempDir())
		o.Mapper = Auto
		for i := range c.n {
			writePicture(t, filepath.Join(o.Inputs[0], fmt.Sprintf("%d.png", i)), c.w, c.h,
				func(x, y int) uint8 { return c.pixel(i, x, y) })
		}
		_, err := run(t.Context(), o)
		if fault.ExitCode(err) != fault.ExitData || !strings.Contains(fault.Hint(err), c.hint) {
			t.Errorf("%s: %v; %s", name, err, fault.Hint(err))
		}
	}
}

// scatter is a grey that differs everywhere.
func scatter(i, x, y int) uint8 {
	return uint8(uint32(x/3+1)*2654435761>>13 ^ uint32(y/3+1)*2246822519>>11 ^ uint32(i)*3266489917>>9)
}

// TestOwnChoice wants COLMAP only where something is asked for that it alone has, or where it has begun.
func TestOwnChoice(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *Options)
		own    bool
	}{
		"default":  {func(*Options) {}, true},
		"own":      {func(o *Options) { o.Mapper = MapOwn }, true},
		"sequence": {func(o *Options) { o.Matching = MatchSequential }, true},
		"panorama": {func(o *Options) { o.CameraModel = Panorama }, true},
		"fisheye":  {func(o *Options) { o.CameraModel = "OPENCV_FISHEYE" }, true},
		"pinhole":  {func(o *Options) { o.CameraModel = "SIMPLE_PINHOLE" }, true},
		"full":     {func(o *Options) { o.CameraModel = "FULL_OPENCV" }, false},
		"global":   {func(o *Options) { o.Mapper = MapGlobal }, false},
	} {
		o := NewOptions()
		o.Out = t.TempDir()
		c.change(o)
		if o.choosesOwn() != c.own {
			t.Errorf("%s: own is %v", name, !c.own)
		}
	}
	o := NewOptions()
	o.Out = t.TempDir()
	must.Do(t, os.WriteFile(o.in(databaseFile), nil, 0o666))
	if o.choosesOwn() {
		t.Error("what COLMAP began goes on without it")
	}
	o.Mapper, o.CameraModel = MapOwn, "FULL_OPENCV"
	if err := o.check(); !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), "camera-model") {
		t.Errorf("own and a model of COLMAP: %v", err)
	}
}

// TestOwnFiles refuses files of others in the place of its own, and replaces them where it may.
func TestOwnFiles(t *testing.T) {
	for _, name := range []string{featuresFile, matchesFile} {
		o := drawn(t, 3)
		must.Do(t, os.MkdirAll(o.Out, 0o777))
		must.Do(t, os.WriteFile(o.in(name), []byte("mine"), 0o666))
		if _, err := run(t.Context(), o); !errors.Is(err, fault.ErrUsage) || !output.IsFile(o.in(name)) {
			t.Errorf("%s was there: %v", name, err)
		}
	}
}

// withCamera puts the name of a camera into a PNG.
func withCamera(t *testing.T, file, name string) {
	t.Helper()
	b := append([]byte("II*\x00\x08\x00\x00\x00\x01\x00\x10\x01\x02\x00"), byte(len(name)+1)) // tag 0x110, a text
	b = append(b, 0, 0, 0, 26, 0, 0, 0, 0, 0, 0, 0)
	data := must.Get(os.ReadFile(file))(t)
	must.Do(t, os.WriteFile(file, scenetest.WithChunk(data, "eXIf", append(b, name+"\x00"...)), 0o666))
}

// TestOwnLenses has photos share lenses by size and camera, frames by their video, and photos of which nothing tells
// the camera by size, unless several cameras are told.
func TestOwnLenses(t *testing.T) {
	o := optionsOf(t)
	w := &own{mapper: &mapper{base: &base{o: o}, material: &material{
		sources: []*source{{}, {video: true, folder: "walk"}},
		photos:  []string{"a.png", "b.png", "c.png", "d.png", "e.png", "walk/1.png", "walk/2.png"}}}}
	for i, name := range w.mapper.photos {
		file := o.in(imagesFolder, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o777))
		must.Do(t, writePhoto(file, 40+20*(i/4%2), 60-20*(i/4%2), 0)) // e and the frames lie
	}
	lenses := func(models ...string) (list []int) {
		for i, model := range models {
			if model != "" {
				withCamera(t, o.in(imagesFolder, w.mapper.photos[i]), model)
			}
		}
		must.Do(t, w.list())
		at := map[string]int{}
		for _, p := range w.photos {
			if _, known := at[p.Lens]; !known {
				at[p.Lens] = len(at)
			}
			list = append(list, at[p.Lens])
		}
		return list
	}
	if got := lenses(); !slices.Equal(got, []int{0, 0, 0, 0, 1, 2, 2}) {
		t.Errorf("photos of two sizes have lenses %v", got)
	}
	if got := lenses("Phone", "Phone", "", "", "Camera"); !slices.Equal(got, []int{0, 0, 1, 2, 3, 4, 4}) {
		t.Errorf("photos of two cameras and others have lenses %v", got)
	}
}

// Only COLMAP matches many photos in the order of their names without being asked, so only then may that be the cause.
func TestPlanMatching(t *testing.T) {
	m := &mapper{base: &base{o: NewOptions()}, material: &material{photos: make([]string, exhaustiveUpTo+1)}}
	if how := m.planMatching(); how != MatchAll {
		t.Errorf("own matching is %s", how)
	}
	if m.colmap = (&colmapTool{}); m.planMatching() != MatchSequential {
		t.Error("COLMAP matches all pairs")
	}
}
