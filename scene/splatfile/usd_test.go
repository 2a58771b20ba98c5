package splatfile

import (
	"encoding/json"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// usdScript reads files of USD with Pixar's library: what its validators say, and the values.
const usdScript = `
import json, sys
from pxr import Usd, UsdGeom, UsdValidation, UsdVol
def plain(v):
    if isinstance(v, (int, float, str)): return v
    if hasattr(v, 'GetReal'): return [v.GetReal(), *v.GetImaginary()]
    return [plain(x) for x in v]
validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
for name in sys.argv[1:]:
    stage = Usd.Stage.Open(name)
    prim = stage.GetDefaultPrim().GetChildren()[0]
    assert UsdVol.ParticleField3DGaussianSplat(prim) and UsdGeom.GetStageUpAxis(stage) == 'Y'
    found = [e.GetErrorAsString() for e in UsdValidation.ValidationContext(validators).Validate(stage)]
    schema = prim.GetPrimDefinition()
    for p in prim.GetAuthoredAttributes():
        spec = schema.GetSchemaAttributeSpec(p.GetName())
        if not p.IsCustom() and (spec.typeName != p.GetTypeName() or spec.variability != p.GetVariability()):
            found.append(p.GetName() + ' is not what the schema says')
    print(json.dumps({'wrong': found, 'has': {p.GetName(): plain(p.Get()) for p in prim.GetAuthoredAttributes()}}))`

// usdRead is what the script says of a file.
type usdRead struct {
	Wrong []string
	Has   struct {
		Extent       [][3]float32
		Positions    [][3]float32
		Orientations [][4]float32 // real part first
		Scales       [][3]float32
		Opacities    []float32
		Degree       int          `json:"radiance:sphericalHarmonicsDegree"`
		SH           [][3]float32 `json:"radiance:sphericalHarmonicsCoefficients"`
		Own          string       `json:"userProperties:vksplat"`
	}
}

// TestUSDReads lets Pixar's own library, where there is one, read every kind of file at every degree.
func TestUSDReads(t *testing.T) {
	filetest.NeedPython(t, "pxr.UsdVol")
	args, models := []string{"-c", usdScript}, []*scene.Splats{}
	for degree := range scene.MaxSHDegree + 1 {
		m := model(100, degree)
		for _, ext := range usdFormat.Extensions {
			path := filepath.Join(t.TempDir(), "a"+ext)
			must.Get(usdFormat.Write(path, Memory(m, ply.Meta{Near: 0.5}), WriteOptions{}))(t)
			args, models = append(args, path), append(models, m)
		}
	}
	cmd := exec.Command("python3", args...)
	cmd.Stderr = t.Output()
	out := must.Get(cmd.Output())(t)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(models) {
		t.Fatalf("%d files were read, want %d", len(lines), len(models))
	}
	for i, line := range lines {
		var got usdRead
		must.Do(t, json.Unmarshal([]byte(line), &got))
		if len(got.Wrong) > 0 || got.Has.Degree != models[i].Degree || got.Has.Own != `{"near":0.5}` {
			t.Errorf("%s: wrong %q, degree %d, %s", filepath.Base(args[2+i]), got.Wrong, got.Has.Degree, got.Has.Own)
		}
		compare(t, filepath.Base(args[2+i]), got.splats(), models[i], quantisation["glb"])
		got.checkExtent(t)
	}
}

// checkExtent wants the box to hold three standard deviations of every splat, and no more.
func (r *usdRead) checkExtent(t *testing.T) {
	t.Helper()
	low, high := [3]float32{1e9, 1e9, 1e9}, [3]float32{-1e9, -1e9, -1e9}
	for i, x := range r.Has.Positions {
		reach := 3 * slices.Max(r.Has.Scales[i][:])
		for k := range 3 {
			low[k], high[k] = min(low[k], x[k]-reach), max(high[k], x[k]+reach)
		}
	}
	if e := r.Has.Extent; len(e) != 2 || e[0] != low || e[1] != high {
		t.Errorf("extent %v, want %v to %v", e, low, high)
	}
}

// splats gives what was read in our axes and values.
func (r *usdRead) splats() *scene.Splats {
	s := scene.NewSplats(len(r.Has.Positions), r.Has.Degree)
	for i, x := range r.Has.Positions {
		copy(s.Means[3*i:], x[:])
		copy(s.Quats[4*i:], r.Has.Orientations[i][:])
		for k, length := range r.Has.Scales[i] {
			s.LogScales[3*i+k] = float32(math.Log(float64(length)))
		}
		s.LogitOpacities[i] = logit(float64(r.Has.Opacities[i]))
	}
	for i, x := range r.Has.SH {
		copy(s.SH[3*i:], x[:])
	}
	flip(s, glbFrame[0], glbFrame[1], glbFrame[2])
	return s
}
