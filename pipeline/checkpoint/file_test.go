package checkpoint

import (
	"bytes"
	"errors"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/safetensors"
	"vksplat/scene/splatfile"
	"vksplat/shaders/layout"
)

// TestSplatFields wants every row of a chunk in exactly one tensor.
func TestSplatFields(t *testing.T) {
	for degree := range scene.MaxSHDegree + 1 {
		for _, precision := range []string{recipe.PrecisionFull, recipe.PrecisionMixed} {
			rows := layout.RowsOf(degree, precision == recipe.PrecisionMixed)
			var spare int // half words without a number: there is an odd number of spherical harmonics
			if rows.Mixed {
				spare = (rows.NParams - layout.RowSh) % 2
			}
			seen := make([]string, 2*rows.NRows()) // by half word
			for _, f := range splatFields(rows) {
				n := 1
				for _, d := range f.shape {
					n *= d
				}
				if n != f.width {
					t.Errorf("degree %d, %s: %s has %d numbers and the shape %v", degree, precision, f.name, f.width,
						f.shape)
				}
				at, end := 2*f.row, 2*(f.row+f.rows)
				for k := range f.width {
					halves := []int{2 * (f.row + k), 2*(f.row+k) + 1}
					if f.dtype != "F32" {
						halves = []int{at + f.half + k*f.step}
					}
					for _, h := range halves {
						if seen[h] != "" || h < at || h >= end {
							t.Errorf("degree %d, %s: half word %d is in %q and in %s of %d to %d", degree, precision, h,
								seen[h], f.name, at, end)
						}
						seen[h] = f.name
					}
				}
			}
			for h, name := range seen {
				if name == "" && (spare == 0 || h != 2*rows.First-1) {
					t.Errorf("degree %d, %s: half word %d is in no tensor", degree, precision, h)
				}
			}
		}
	}
}

func TestInterleave(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for _, count := range []int{1, 31, 32, 33, 3*transposePart + 5} {
		for _, width := range []int{1, 3, 45} {
			stride := count + 7
			rows := make([]byte, 4*width*stride)
			random.Read(rows)
			out := make([]byte, 4*width*count)
			interleave(out, rows, width, count, stride)
			for range 100 {
				i, r := random.Intn(count), random.Intn(width)
				if !bytes.Equal(out[4*(i*width+r):][:4], rows[4*(r*stride+i):][:4]) {
					t.Fatalf("%d splats of %d: number %d of splat %d is wrong", count, width, r, i)
				}
			}
			back := bytes.Clone(rows)
			for r := range width {
				clear(back[4*r*stride:][:4*count])
			}
			deinterleave(back, out, width, count, stride)
			if !bytes.Equal(back, rows) {
				t.Fatalf("%d splats of %d: they do not come back", count, width)
			}
		}
	}
}

// smallCheckpoint is a checkpoint of two splats of degree 0 with a changed header, made without a device.
func smallCheckpoint(t testing.TB, change func(*Header), also ...safetensors.TensorInfo) string {
	t.Helper()
	return checkpointOf(t, change, func(json string) string { return json }, also...)
}

// checkpointOf is smallCheckpoint with a header whose text is changed as well.
func checkpointOf(t testing.TB, change func(*Header), text func(json string) string,
	also ...safetensors.TensorInfo) string {
	t.Helper()
	cfg := recipe.Default()
	cfg.SHDegree = 0
	h := Header{Format: format, Version: "test", Step: 601, Splats: 2, StartSplats: 2,
		SplatCeiling: 5, ScheduleIterations: 30000,
		Next: recipe.Unit{Kind: recipe.Refine, Number: 602, Step: 600}, Config: cfg,
		Frame: FrameRecord{Scale: 1, SceneScale: 1}, Activations: activations}
	change(&h)
	metadata := must.Get(h.metadata())(t)
	metadata = splatfile.CheckpointMetadata(text(metadata["vksplat"]))
	var tensors []safetensors.TensorData
	add := func(info safetensors.TensorInfo) {
		n := must.Get(info.Bytes())(t)
		tensors = append(tensors, safetensors.TensorData{TensorInfo: info, Write: func(w io.Writer) error {
			_, err := w.Write(make([]byte, n))
			return err
		}})
	}
	for _, f := range splatFields(layout.RowsOf(0, h.Config.Precision == recipe.PrecisionMixed)) {
		add(f.tensorOf(2))
	}
	for _, x := range also {
		add(x)
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	must.Do(t, safetensors.Write(path, metadata, tensors))
	return path
}

// asMixed makes a header that of a run in mixed precision.
func asMixed(h *Header) { h.Config.Precision = recipe.PrecisionMixed }

func TestCheckpointRefusals(t *testing.T) {
	good, err := Open(smallCheckpoint(t, func(*Header) {}))
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	if err := good.Verify(); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		want   string
		change func(*Header)
	}{
		{"newer version", func(h *Header) { h.Format++ }},
		{"format version 0", func(h *Header) { h.Format = 0 }},
		{"tensor means is F32 [2 3], want F32 [3 3]", func(h *Header) { h.Splats = 3 }},
		{"0 splats", func(h *Header) { h.Splats = 0 }},
		{"ceiling of 1", func(h *Header) { h.SplatCeiling = 1 }},
		{"SH degree 1", func(h *Header) { h.SHDegree = 1 }},
		{"tensor shN is missing", func(h *Header) { h.SHDegree, h.Config.SHDegree = 1, 1 }},
		{"600 steps done", func(h *Header) { h.Step = 600 }},
		{"step -1", func(h *Header) { h.Step, h.Next.Step = -1, -2 }},
		{`next is "render"`, func(h *Header) { h.Next.Kind = recipe.Render }},
		{"of 0", func(h *Header) { h.ScheduleIterations = 0 }},
		{"a frame of scale 0", func(h *Header) { h.Frame.Scale = 0 }},
		{"iterations is 0", func(h *Header) { h.Config.Iterations = 0 }},
	} {
		c, err := Open(smallCheckpoint(t, tt.change))
		if err == nil {
			c.Close()
			t.Errorf("%s: no error", tt.want)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || !errors.Is(err, fault.ErrData) || fault.Hint(err) == "" {
			t.Errorf("%v, hint %q, want %q", err, fault.Hint(err), tt.want)
		}
	}
	other := smallCheckpoint(t, func(h *Header) { h.SHDegree, h.Config.SHDegree = 1, 1 })
	_, err = splatfile.Open(other)
	if !errors.Is(err, splatfile.ErrOtherTensors) || !strings.Contains(fault.Hint(err), "version") {
		t.Errorf("as a model: %v, hint %q", err, fault.Hint(err))
	}
	path := filepath.Join(t.TempDir(), "x")
	for _, metadata := range []map[string]string{
		nil, {"format": "pt"},
		splatfile.CheckpointMetadata("{"), splatfile.CheckpointMetadata(`{"format_version":1,"more":2}`),
	} {
		must.Do(t, safetensors.Write(path, metadata, nil))
		if _, err := Open(path); err == nil ||
			errors.Is(err, splatfile.ErrNotCheckpoint) != (metadata["vksplat"] == "") {
			t.Errorf("metadata %v: %v", metadata, err)
		}
	}
}

// TestChangesOfOldHeaders wants no change of a scaled run that was started before there was a resolution schedule.
func TestChangesOfOldHeaders(t *testing.T) {
	cfg := recipe.Default().Scaled(0.5)
	cfg.SHDegree = 0
	without := func(json string) string { return strings.Replace(json, `"resolution_schedule":1500,`, "", 1) }
	c := must.Get(Open(checkpointOf(t, func(h *Header) { h.Config = cfg }, without)))(t)
	defer c.Close()
	if c.Header.Config.ResolutionSchedule == cfg.ResolutionSchedule {
		t.Fatal("the header has a resolution schedule: the test proves nothing")
	}
	if list := c.Changes(cfg, c.Header.Capture); len(list) != 0 {
		t.Errorf("of nothing: %v", list)
	}
	cfg.NumDownscales = 1
	if list := c.Changes(cfg, c.Header.Capture); len(list) != 2 {
		t.Errorf("of progressive resolution: %v", list)
	}
}

// TestSettingsOfOtherVersions reads a header that lacks settings of today, which then have their defaults, and refuses
// one with a setting that only a newer version can know.
func TestSettingsOfOtherVersions(t *testing.T) {
	same := func(*Header) {}
	older, err := Open(checkpointOf(t, same, func(json string) string {
		return strings.Replace(json, `"lr_cooldown":0,"lr_cooldown_final":0.1`, `"iterations":30000`, 1)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer older.Close()
	if c := older.Header.Config; c.LRCooldown != 0 || c.LRCooldownFinal != 0.1 {
		t.Errorf("an older header: %+v", c)
	}
	for value, want := range map[string]error{"false": nil, "true": errFormer} {
		f, err := Open(checkpointOf(t, same, func(json string) string {
			return strings.Replace(json, `"refine_cameras":false`, `"refine_poses":`+value, 1)
		}))
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("refine_poses %s: %v", value, err)
		}
		if err == nil {
			f.Close()
		}
	}
	newer, err := Open(checkpointOf(t, same, func(json string) string {
		return strings.Replace(json, `"lr_cooldown":0`, `"lr_cooldown":0,"lr_of_tomorrow":1`, 1)
	}))
	if err == nil {
		newer.Close()
	}
	if !errors.Is(err, errNewer) || !strings.Contains(fault.Hint(err), "newer") {
		t.Errorf("a newer header: %v, hint %q", err, fault.Hint(err))
	}
}

// TestChanges names what differs, and lets iterations grow.
func TestChanges(t *testing.T) {
	capture := CaptureRecord{Fingerprint: "aaaa", Photos: 7, Points: 9}
	c := must.Get(Open(smallCheckpoint(t, func(h *Header) { h.Capture = capture })))(t)
	defer c.Close()
	words := func(cfg recipe.Config, capture CaptureRecord) string {
		var list []string
		for _, x := range c.Changes(cfg, capture) {
			list = append(list, x.String())
		}
		return strings.Join(list, "; ")
	}
	cfg := c.Header.Config
	if got := words(cfg, capture); got != "" {
		t.Errorf("of nothing: %s", got)
	}
	cfg.Iterations++
	if got := words(cfg.StartedFor(5), capture); got != "" {
		t.Errorf("of more iterations: %s", got)
	}
	cfg.Iterations, cfg.Background[1], cfg.Strategy = 700, 0.5, recipe.StrategyMCMC
	if got, want := words(cfg, capture),
		`background: [0,0,0] -> [0,0.5,0]; iterations: 30000 -> 700; strategy: "3dgs" -> "mcmc"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	other := capture
	other.Fingerprint, other.Points = "bbbb", 10
	if got := words(c.Header.Config, other); got != "capture's points: 9 -> 10" {
		t.Errorf("of points: %s", got)
	}
	other.Points = 9
	if got := words(c.Header.Config, other); got != "capture's contents: aaaa -> bbbb" {
		t.Errorf("of pixels: %s", got)
	}
	other.Parts = PartsRecord{Cameras: "c", Files: "f"} // the checkpoint says nothing of its parts
	if got := words(c.Header.Config, other); got != "capture's contents: aaaa -> bbbb" {
		t.Errorf("of an earlier version: %s", got)
	}
	other = capture
	other.Split = "cccc"
	if got := words(c.Header.Config, other); got != "capture's choice of held-out photos:  -> cccc" {
		t.Errorf("of held-out photos: %s", got)
	}
}

// TestPartsChanged names the parts of a capture that differ.
func TestPartsChanged(t *testing.T) {
	was := PartsRecord{Cameras: "0123456789abcdef", Files: "f", Depths: "d", Anchors: "a"}
	for want, change := range map[string]func(p *PartsRecord){
		"contents: aaaa -> bbbb":               func(p *PartsRecord) {},
		"cameras or points: 0123456789ab -> c": func(p *PartsRecord) { p.Cameras, p.Depths = "c", "e" },
		"photos or masks, by their content: f -> g; capture's known normals: none -> n": func(p *PartsRecord) {
			p.Files, p.Normals = "g", "n"
		},
		"known depths: d -> none":          func(p *PartsRecord) { p.Depths = "" },
		"points that hold poses: a -> b":   func(p *PartsRecord) { p.Anchors = "b" },
		"motions of cameras: none -> m":    func(p *PartsRecord) { p.Motions = "m" },
		"contents: aaaa -> bbbb (nothing)": func(p *PartsRecord) { *p = PartsRecord{} }, // could not be read
	} {
		now := CaptureRecord{Fingerprint: "bbbb", Parts: was}
		change(&now.Parts)
		before := CaptureRecord{Fingerprint: "aaaa", Parts: was}
		c := must.Get(Open(smallCheckpoint(t, func(h *Header) { h.Capture = before })))(t)
		var list []string
		for _, x := range c.Changes(c.Header.Config, now) {
			list = append(list, x.String())
		}
		want, _, _ = strings.Cut("capture's "+want, " (")
		if got := strings.Join(list, "; "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		c.Close()
	}
}

// TestCheckpointInPython opens a checkpoint with the package that defines the layout.
func TestCheckpointInPython(t *testing.T) {
	filetest.NeedPython(t, "safetensors, numpy")
	script := `
import sys, json, safetensors
with safetensors.safe_open(sys.argv[1], "np") as f:
    header = json.loads(f.metadata()["vksplat"])
    assert header["next"] == {"kind": "refine", "number": 602, "step": 600}, header
    n = header["splats"]
    shapes = {"means": (n, 3), "quats": (n, 4), "log_scales": (n, 3), "logit_opacities": (n,), "sh0": (n, 1, 3)}
    for name, shape in shapes.items():
        for prefix in "", "adam_m_", "adam_v_":
            t = f.get_tensor(prefix + name)
            assert t.shape == shape and t.dtype == "float32", (prefix + name, t.shape, t.dtype)
    assert header["activations"]["log_scales"] == "exp"
`
	mixed := `
import sys, safetensors
with safetensors.safe_open(sys.argv[1], "np") as f:
    assert f.get_tensor("sh0").dtype == "float16"
    for name, dtype in {"means": "F32", "sh0": "F16", "adam_m_sh0": "BF16", "adam_v_means": "BF16", "stat_count": "F32"}.items():
        assert f.get_slice(name).get_dtype() == dtype, name
`
	for script, path := range map[string]string{script: smallCheckpoint(t, func(*Header) {}),
		mixed: smallCheckpoint(t, asMixed)} {
		if out, err := exec.Command("python3", "-c", script, path).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	for _, change := range []func(*Header){func(*Header) {}, asMixed,
		func(h *Header) { h.Splats = 1 << 30 }} {
		data := must.Get(os.ReadFile(smallCheckpoint(f, change)))(f)
		f.Add(data)
	}
	path := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, data []byte) {
		must.Do(t, os.WriteFile(path, data, 0o666))
		c, err := Open(path)
		if err != nil {
			if !errors.Is(err, fault.ErrData) || fault.Hint(err) == "" {
				t.Errorf("%v, hint %q", err, fault.Hint(err))
			}
			return
		}
		defer c.Close()
		if err := c.Verify(); err != nil {
			t.Error(err)
		}
		c.Changes(recipe.Default(), CaptureRecord{})
	})
}

// TestFormerCheckpoint opens a checkpoint of the format before Carve, whose configuration has a clearance in its place.
func TestFormerCheckpoint(t *testing.T) {
	for _, clearance := range []string{"0.5", "0"} {
		path := checkpointOf(t, func(h *Header) { h.Format = 1 }, func(json string) string {
			return strings.Replace(json, `"carve":0.7`, `"clearance":`+clearance, 1)
		})
		c := must.Get(Open(path))(t)
		if want, _ := strconv.ParseFloat(clearance, 64); c.Hidden != want || c.Header.Config.Carve != 0 {
			t.Errorf("clearance %s: hidden %g, carve %g", clearance, c.Hidden, c.Header.Config.Carve)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
