package main

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/ply"
	"vksplat/scene/ply/plytest"
)

// TestPlantedFloaters goes on with a model that has opaque splats right in front of the cameras of a ring, which the
// cameras across look at, too: a few steps with carving remove them, and without it they stay.
func TestPlantedFloaters(t *testing.T) {
	capture := truthCapture(t, false)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	command(t, slices.Concat([]string{"train", capture, "-m", in("first")}, truthSizeOf().flags(), chosenDevice())...)
	model, _ := scoresOfRun(t, in("first"))
	const each = 6
	planted := plant(t, model, capture, in("planted.ply"), each)
	for carve, most := range map[string]int{"0.7": len(planted) / 20, "0": len(planted)} {
		args := []string{"train", capture, "-m", in("carve" + carve), "--init=ply:" + in("planted.ply"),
			"--carve=" + carve,
			"--iterations=20", "--refine-start=5", "--refine-every=5", "--refine-stop=15", "--report=false",
			"--progress=none"}
		command(t, slices.Concat(args, chosenDevice())...)
		s, _, err := ply.Read(filepath.Join(in("carve"+carve), output.ModelFolder+"20", output.ModelName))
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, at := range planted {
			if visibleAt(s, at) {
				left++
			}
		}
		t.Logf("carve %s: %d of %d are left", carve, left, len(planted))
		if left > most || carve == "0" && left < len(planted)/2 {
			t.Errorf("carve %s: %d of %d planted splats are left", carve, left, len(planted))
		}
	}
}

// plant writes a model with n more splats in front of each camera of a capture, and returns where they are.
func plant(t *testing.T, model, capture, out string, n int) (at [][3]float64) {
	t.Helper()
	s, info, err := ply.Read(model)
	if err != nil {
		t.Fatal(err)
	}
	c := must.Get(load.Capture(capture, scene.LoadOptions{}))(t)
	for i, d := range c.Depths(1) {
		cam := &c.Cameras[i]
		for k := range n {
			p := [3]float64{0.05 * float64(k%3-1), 0.05 * float64(k/3), 0.3}
			for a := range p {
				p[a] = p[a]*d.Empty - cam.T[a]
			}
			r := &cam.R
			at = append(at, [3]float64{r[0]*p[0] + r[3]*p[1] + r[6]*p[2], r[1]*p[0] + r[4]*p[1] + r[7]*p[2],
				r[2]*p[0] + r[5]*p[1] + r[8]*p[2]})
		}
	}
	more := scene.NewSplats(s.N+len(at), s.Degree)
	copy(more.Means, s.Means)
	copy(more.Quats, s.Quats)
	copy(more.LogScales, s.LogScales)
	copy(more.LogitOpacities, s.LogitOpacities)
	copy(more.SH, s.SH)
	for k, p := range at {
		i := s.N + k
		for a, x := range p {
			more.Means[3*i+a], more.LogScales[3*i+a] = float32(x), float32(math.Log(0.005))
		}
		more.Quats[4*i], more.LogitOpacities[i] = 1, 2
	}
	must.Do(t, plytest.Write(out, more, info.Meta))
	return at
}

// visibleAt says whether a splat that a picture may show is within 0.02 units of a place.
func visibleAt(s *scene.Splats, at [3]float64) bool {
	for i := range s.N {
		x, y, z := float64(s.Means[3*i])-at[0], float64(s.Means[3*i+1])-at[1], float64(s.Means[3*i+2])-at[2]
		if math.Sqrt(x*x+y*y+z*z) < 0.02 && s.LogitOpacities[i] > -5 {
			return true
		}
	}
	return false
}
