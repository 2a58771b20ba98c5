package calibrate

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/adjust"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
)

// TestCeres holds the adjustment against Ceres, through COLMAP: from the same start, the same cost and the same lens.
func TestCeres(t *testing.T) {
	program, err := exec.LookPath("colmap")
	if err != nil {
		t.Skip("needs COLMAP's bundle_adjuster")
	}
	captures := filepath.FromSlash("../../../shared/data")
	if _, err := os.Stat(captures); err != nil {
		t.Skip("needs the captures beside the repository")
	}
	for _, name := range []string{"fox_pinhole", "kermit", "monstree_exif", "desk", "beach"} {
		c := must.Get(load.Capture(filepath.Join(captures, name), scene.LoadOptions{Model: scene.AnyModel}))(t)
		m, _, err := colmap.ReadModel(c)
		must.Do(t, err)
		for id, k := range m.Cameras {
			m.Cameras[id], _ = k.Raised()
		}
		start, theirs := t.TempDir(), t.TempDir()
		must.Do(t, colmap.Save(start, m.Files()))
		if out, err := exec.Command(program, "bundle_adjuster", "--input_path", start, "--output_path", theirs,
			"--BundleAdjustment.max_num_iterations", "200", "--BundleAdjustment.function_tolerance", "1e-10",
			"--BundleAdjustment.refine_principal_point", "0").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		ours := newNetwork(c, m).problem()
		ours.PointsFixed = false
		for i := range ours.Poses {
			ours.Poses[i].Fixed = false
		}
		for i := range ours.Lenses {
			l := &ours.Lenses[i]
			l.Free = [scene.MaxCalibrated]bool{true, true, false, false, true, true, true, true}
		}
		s := must.Get(adjust.Solve(context.Background(), ours, adjust.Options{Steps: 200, Gain: 1e-9}))(t)
		done := *c
		done.Calibrated = colmap.Folder(theirs)
		m, _, err = colmap.ReadModel(&done)
		must.Do(t, err)
		other := newNetwork(&done, m)
		var cost float64
		for _, d := range must.Get(other.problem().Residuals())(t) {
			cost += d[0]*d[0] + d[1]*d[1]
		}
		if math.Abs(s.After-cost) > 1e-3*cost {
			t.Errorf("%s: cost %g to %g, Ceres %g", name, s.Before, s.After, cost)
		}
		for i, k := range other.lenses {
			for j, want := range k.Params {
				if got := ours.Lenses[i].Params[j]; math.Abs(got-want) > 1e-4*max(1, math.Abs(want)) {
					t.Errorf("%s: lens %d, parameter %d is %.9g, of Ceres %.9g", name, i, j, got, want)
				}
			}
		}
		t.Logf("%s: %d observations, cost %.6g to %.6g in %d steps, Ceres %.6g", name, len(ours.Observations), s.Before,
			s.After, s.Steps, cost)
	}
}
