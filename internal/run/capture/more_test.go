//go:build unix

package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/capture/capturetest"
	"vksplat/internal/run/reconstruct"
	"vksplat/scene"
	"vksplat/scene/colmap"
)

// walked is how many photos are taken on the walk.
const walked = 12

// parts draws photos of a walk into folders: the names in each are the numbers of the photos.
func parts(t *testing.T, o *Options, numbers ...[]int) (dirs []string) {
	t.Helper()
	for k, list := range numbers {
		dir := filepath.Join(t.TempDir(), fmt.Sprint("part", k))
		must.Do(t, os.MkdirAll(dir, 0o777))
		for _, i := range list {
			name := fmt.Sprintf("%03d.png", i)
			must.Do(t, os.Rename(filepath.Join(o.Inputs[0], name), filepath.Join(dir, name)))
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// modelIn reads the model of a scene.
func modelIn(t *testing.T, o *Options) *colmap.Model {
	t.Helper()
	m, _, err := colmap.ReadModel(&scene.Capture{Format: scene.FormatColmap, Model: o.in(modelFolder)})
	must.Do(t, err)
	return m
}

// wantKept checks that cameras, poses and points of a model are those of another, which has some more photos, and that
// all photos of the latter are where they were taken.
func wantKept(t *testing.T, what string, before, after *colmap.Model, more int) {
	t.Helper()
	if len(after.Images) != len(before.Images)+more {
		t.Fatalf("%s: %d photos, before %d", what, len(after.Images), len(before.Images))
	}
	for i, img := range before.Images {
		if after.Images[i] != img {
			t.Errorf("%s: %s has moved", what, img.Name)
		}
	}
	for id, k := range before.Cameras {
		if fmt.Sprint(after.Cameras[id]) != fmt.Sprint(k) {
			t.Errorf("%s: camera %d is another", what, id)
		}
	}
	for i, p := range before.Points {
		if after.Points[i] != p {
			t.Fatalf("%s: point %d is another", what, p.ID)
		}
	}
	var here, there []geom.Vec
	for _, v := range after.Images {
		turn, _ := geom.RotationFromQuat(v.Quat)
		here = append(here, geom.TranslationOf(geom.Transposed(turn), v.T))
		n := 0
		must.Get(fmt.Sscanf(filepath.Base(v.Name), "%d.png", &n))(t)
		there = append(there, capturetest.Walk(n, walked))
	}
	if worst, size := capturetest.Misfit(here, there); worst > 0.005*size {
		t.Errorf("%s: a camera is %.3g off, the path has a size of %.3g", what, worst, size)
	}
}

// TestMore adds photos to a scene twice; each call goes on after a stop to the same bytes, and does nothing again.
func TestMore(t *testing.T) {
	o := drawn(t, walked)
	dirs := parts(t, o, []int{3, 8}, []int{0, 11})
	must.Get(run(t.Context(), o))(t)
	base, first := modelIn(t, o), modelBytes(t, o)
	again := *o
	again.Inputs, again.More = dirs[:1], true
	said := must.Get(run(t.Context(), &again))(t)
	if !strings.Contains(said, "added:    2 of 2 photos") || !strings.Contains(said, "cameras:  10 of 10 photos") {
		t.Error(said)
	}
	if r := reportOf(t, o); r.Added == nil || *r.Added != (Added{2, 2}) || r.Registered != 10 {
		t.Errorf("the report is %+v", r)
	}
	one := modelIn(t, o)
	wantKept(t, "two photos", base, one, 2)
	longer := 0
	for i := range base.Points {
		if n := sights(one, base.Points[i].ID); n > sights(base, base.Points[i].ID) {
			longer++
		}
	}
	if longer < 100 || len(one.Cameras) != len(base.Cameras) {
		t.Errorf("new photos show %d points that were there, and there are %d cameras", longer, len(one.Cameras))
	}
	want := modelBytes(t, o)
	if said := must.Get(run(t.Context(), &again))(t); strings.Count(said, "done before") != 6 {
		t.Error(said)
	}
	for _, stage := range []string{stageFeatures, stageMatches, stageMapping} {
		stopAt(t, &again, "+"+stage)
		must.Get(run(t.Context(), &again))(t)
		if modelBytes(t, o) != want {
			t.Errorf("%s: after a stop the model is another", stage)
		}
	}
	again.Inputs = dirs[1:]
	must.Get(run(t.Context(), &again))(t)
	wantKept(t, "two more", one, modelIn(t, o), 2)
	// the scene's own command does nothing, or begins with what it made itself
	if said := must.Get(run(t.Context(), o))(t); !strings.Contains(said, "model:    done before") {
		t.Error(said)
	}
	must.Do(t, os.RemoveAll(o.in(componentsFolder)))
	must.Get(run(t.Context(), o))(t)
	if modelBytes(t, o) != first {
		t.Error("the scene's own command makes another model")
	}
}

// sights counts the photos that show a point.
func sights(m *colmap.Model, id uint64) (n int) {
	for _, list := range m.Seen {
		for _, s := range list {
			if s.Point == id {
				n++
			}
		}
	}
	return n
}

// stopAt does the stages of a call again from one on, and stops there.
func stopAt(t *testing.T, o *Options, stage string) {
	t.Helper()
	s := readState(o.in(stateFile))
	s.Stages = s.Stages[:s.at(stage)]
	must.Do(t, s.save())
	if _, err := runUntil(t, *o, strings.TrimPrefix(stage, moreMark)); !errors.Is(err, fault.ErrInterrupted) {
		t.Errorf("%s: stopped: %v", stage, err)
	}
}

// stopper stops a call in a stage, as Ctrl-C does.
type stopper struct {
	stage string
	stop  func()
}

func (s *stopper) Stage(now *Stage) {
	if now.Name == s.stage && !now.Done {
		s.stop()
	}
}

func (s *stopper) Growing(func() *reconstruct.Sketch, bool) {}

// runUntil runs a call that is stopped in a stage.
func runUntil(t *testing.T, o Options, stage string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Watch = &stopper{stage, cancel}
	return run(ctx, &o)
}

// TestMoreOfOthers adds photos with cameras of their own to a model of another program, whose photos have no features
// yet: one that lies in the folder already, and another.
func TestMoreOfOthers(t *testing.T) {
	o := drawn(t, walked)
	dirs := parts(t, o, []int{4}, []int{7})
	must.Get(run(t.Context(), o))(t)
	base := modelIn(t, o)
	for _, name := range []string{stateFile, listFile, featuresFile, matchesFile, componentsFolder, reportFile,
		coverageFile} {
		must.Do(t, os.RemoveAll(o.in(name)))
	}
	must.Do(t, os.WriteFile(o.in(modelFolder, "frames.bin"), nil, 0o666))
	must.Do(t, os.Rename(filepath.Join(dirs[0], "004.png"), o.in(imagesFolder, "004.png")))
	again := *o
	again.Inputs, again.More, again.Cameras = []string{o.Out, dirs[1]}, true, CamerasMany
	said := must.Get(run(t.Context(), &again))(t)
	after := modelIn(t, o)
	wantKept(t, said, base, after, 2)
	if len(after.Cameras) != len(base.Cameras)+2 {
		t.Errorf("there are %d cameras", len(after.Cameras))
	}
	if _, err := os.Stat(o.in(modelFolder, "frames.bin")); err == nil {
		t.Error("frames of the old model stay")
	}
	wantFiles(t, o.in(givenFolder), "images.bin", "frames.bin")
}

// TestMoreRefuses says what is wrong, and changes nothing.
func TestMoreRefuses(t *testing.T) {
	o := drawn(t, 6)
	more := *o
	more.More = true
	if _, err := run(t.Context(), &more); !errors.Is(err, fault.ErrUsage) ||
		!strings.Contains(fault.Hint(err), "make it") {
		t.Errorf("no scene: %v", err)
	}
	must.Get(run(t.Context(), o))(t)
	want := modelBytes(t, o)
	if _, err := run(t.Context(), &more); !errors.Is(err, fault.ErrUsage) ||
		!strings.Contains(err.Error(), "have a camera") {
		t.Errorf("photos that are there: %v", err)
	}
	more.Inputs = []string{t.TempDir()}
	writePicture(t, filepath.Join(more.Inputs[0], "001.png"), 200, 150,
		func(x, y int) uint8 { return scatter(3, x, y) })
	_, err := run(t.Context(), &more)
	if !errors.Is(err, errNothingFits) || fault.ExitCode(err) != fault.ExitData ||
		!strings.Contains(fault.Hint(err), "nothing") {
		t.Errorf("a photo of something else: %v; %s", err, fault.Hint(err))
	}
	if modelBytes(t, o) != want {
		t.Error("the model has changed")
	}
	for _, mapper := range []string{MapGlobal, Auto} {
		c := more
		c.Mapper, c.Model = mapper, 1
		if err := c.check(); !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), "exclude each other") {
			t.Errorf("%s: %v", mapper, err)
		}
	}
}

// TestRealMore adds photos to a scene whose cameras the installed COLMAP found.
func TestRealMore(t *testing.T) {
	if _, err := exec.LookPath(colmapName); err != nil {
		t.Skip("there is no COLMAP here: apt-get install colmap")
	}
	o := drawn(t, walked)
	dirs := parts(t, o, []int{2, 6})
	o.Mapper = MapIncremental
	must.Get(run(t.Context(), o))(t)
	base := modelIn(t, o)
	more := *o
	more.Mapper, more.Inputs, more.More = Auto, dirs, true
	said := must.Get(run(t.Context(), &more))(t)
	wantKept(t, said, base, modelIn(t, o), 2)
	want := modelBytes(t, o)
	stopAt(t, &more, "+"+stageMatches)
	must.Get(run(t.Context(), &more))(t)
	if modelBytes(t, o) != want {
		t.Error("after a stop the model is another")
	}
}

// TestNameApart gives added photos names that no other photo has, and the same ones again after a stop.
func TestNameApart(t *testing.T) {
	o := NewOptions()
	o.Out, o.More = t.TempDir(), true
	other := t.TempDir()
	must.Do(t, os.MkdirAll(o.in(imagesFolder, "sub"), 0o777))
	for _, name := range []string{o.in(imagesFolder, "a.jpg"), o.in(imagesFolder, "sub", "b.jpg"),
		filepath.Join(other, "a.jpg"), filepath.Join(other, "c.jpg"), filepath.Join(other, "w.mp4")} {
		must.Do(t, os.WriteFile(name, []byte(name), 0o666))
	}
	apart := func(s source) string {
		o.nameApart([]*source{&s})
		return strings.Join(append(s.names, s.folder), " ")
	}
	here := source{path: o.in(imagesFolder, "sub"), photos: []string{"b.jpg"}, names: []string{"b.jpg"}}
	if got := apart(here); got != "sub/b.jpg sub" {
		t.Errorf("a photo that is there: %s", got)
	}
	free := source{path: other, photos: []string{"c.jpg"}, names: []string{"c.jpg"}}
	if got := apart(free); got != "c.jpg " {
		t.Errorf("a name that is free: %s", got)
	}
	must.Do(t, os.WriteFile(o.in(imagesFolder, "c.jpg"), []byte(filepath.Join(other, "c.jpg")), 0o666))
	if got := apart(free); got != "c.jpg " {
		t.Errorf("the photo itself: %s", got)
	}
	both := source{path: other, folder: "x", photos: []string{"a.jpg", "c.jpg"}, names: []string{"x/a.jpg", "x/c.jpg"}}
	must.Do(t, os.MkdirAll(o.in(imagesFolder, "x"), 0o777))
	must.Do(t, os.WriteFile(o.in(imagesFolder, "x", "a.jpg"), nil, 0o666))
	taken := apart(both)
	both.names = []string{"x/a.jpg", "x/c.jpg"}
	if folder := filepath.Base(other) + "_"; !strings.HasPrefix(taken, folder) || apart(both) != taken {
		t.Errorf("a name that is taken: %s, then %s", taken, apart(both))
	}
	film := source{path: filepath.Join(other, "w.mp4"), video: true}
	if got := apart(film); !strings.HasPrefix(got, "w_") || apart(film) != got {
		t.Errorf("a video: %s", got)
	}
}

// TestMoreOfPanoramas refuses a model whose cameras cannot be adjusted, and one without photos.
func TestMoreOfPanoramas(t *testing.T) {
	o := NewOptions()
	o.Out = t.TempDir()
	w := &own{mapper: &mapper{base: &base{o: o}}}
	model := &colmap.Model{Cameras: map[uint32]scene.Calibration{1: {Model: scene.LensEquirectangular, Width: 20,
		Height: 10, Params: []float64{20, 10}}}}
	for _, want := range []string{"no photos can be added", "such cameras"} {
		must.Do(t, colmap.Save(o.in(givenFolder), model.Files()))
		err := (&more{own: w}).readGiven()
		if fault.ExitCode(err) != fault.ExitData || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		model.Images = []colmap.Image{{Id: 1, Camera: 1, Name: "a.jpg", Quat: [4]float64{1, 0, 0, 0}}}
	}
}
