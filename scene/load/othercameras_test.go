package load_test

import (
	"maps"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
	"vksplat/scene/synth"
)

// TestOtherCameras: cameras in place of a capture's own ones that omit a photo hold out the same photos.
func TestOtherCameras(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	must.Do(t, synth.Write(dir, synth.Options{Images: 12, Width: 32, Height: 24, Points: 8}))
	own := must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel}))(t)
	m, _, err := colmap.ReadModel(own)
	must.Do(t, err)
	m.Images, m.Seen = append(m.Images[:1], m.Images[2:]...), append(m.Seen[:1], m.Seen[2:]...)
	for id, k := range m.Cameras {
		k.Model, k.Params = scene.LensSimpleRadial, []float64{k.Params[0], k.Params[2], k.Params[3], -0.1}
		m.Cameras[id] = k
	}
	must.Do(t, colmap.Save(other, m.Files()))
	c := must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel, Cameras: colmap.Folder(other)}))(t)
	own.HoldOutEvery(4)
	c.HoldOutEvery(4)
	if len(c.Cameras) != 11 || !maps.Equal(c.HeldOut, own.HeldOut) {
		t.Errorf("%d cameras, held out %v, want %v", len(c.Cameras), c.HeldOut, own.HeldOut)
	}
	if c.Cameras[0].Lens == nil || len(c.Warnings) != len(own.Warnings) {
		t.Errorf("lens %v, warnings %v", c.Cameras[0].Lens, c.Warnings)
	}
	for i := range m.Images { // of the same photos by other names, none is omitted
		m.Images[i].Name = "/elsewhere/" + m.Images[i].Name
	}
	c = must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel, Cameras: m.Files()}))(t)
	c.HoldOutEvery(4)
	if !maps.Equal(c.HeldOut, own.HeldOut) || len(c.LeftOut) != 1 {
		t.Errorf("by other names: held out %v, left out %v", c.HeldOut, c.LeftOut)
	}
}

// TestOtherText takes other cameras in text form, for a binary model.
func TestOtherText(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	must.Do(t, synth.Write(dir, synth.Options{Images: 4, Width: 32, Height: 24, Points: 8}))
	own := must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel}))(t)
	own.Cameras[2].T[1] += 7
	textModel(t, other, own, "1 0 0.5 1 1 2 3 0.5 1 0 2 0\n")
	c := must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel, Cameras: colmap.Folder(other)}))(t)
	tracks := 0
	must.Do(t, colmap.EachTrack(c, func(int, []int) { tracks++ }))
	if off := c.Cameras[2].T[1] - own.Cameras[2].T[1]; off > 1e-4 || off < -1e-4 || len(c.Points) != 1 || tracks != 1 {
		t.Errorf("camera off by %g, %d points, %d tracks", off, len(c.Points), tracks)
	}
}
