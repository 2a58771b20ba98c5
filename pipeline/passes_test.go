package pipeline

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/bench"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders"
	"vksplat/vk"
)

var update = flag.Bool("update", false, "write the table of passes in ARCHITECTURE.md")

// variation is a training whose steps have passes that those of the variations before it lack.
type variation struct {
	name      string
	change    func(*recipe.Config, *TrainerOptions, []scene.Camera)
	lookback  string // VKSPLAT_LOOKBACK; "": 1
	devices   int    // 0: one
	uncounted bool   // its passes need no cost
}

// withDepths is known depths and normals.
func withDepths(_ *recipe.Config, o *TrainerOptions, cams []scene.Camera) {
	o.Known, o.Normals = make(KnownDepths, len(cams)), make(KnownNormals, len(cams))
}

// variations have every setting that turns passes on.
var variations = []variation{
	{name: "every step"},
	{name: "where workgroups cannot wait for each other", lookback: "0"},
	{name: "`--exposure`, `--white-balance` or `--vignetting`",
		change: func(c *recipe.Config, _ *TrainerOptions, _ []scene.Camera) { c.Exposure = true }},
	{name: "`--robust`", change: func(c *recipe.Config, _ *TrainerOptions, _ []scene.Camera) { c.Robust = true }},
	{name: "`--refine-cameras`, once a trial has said yes", uncounted: true,
		change: func(c *recipe.Config, _ *TrainerOptions, _ []scene.Camera) { c.RefineCameras = true }},
	{name: "`--native-lens`, where a lens bends what its camera took", uncounted: true,
		change: func(_ *recipe.Config, _ *TrainerOptions, cams []scene.Camera) {
			cams[0].Distortion = &scene.Distortion{}
		}},
	{name: "where depths or normals are known", uncounted: true, change: withDepths},
	{name: "several devices", devices: 2},
	{name: "several devices, where depths or normals are known", devices: 2, uncounted: true, change: withDepths},
	// In units other than steps.
	{change: func(c *recipe.Config, _ *TrainerOptions, _ []scene.Camera) { *c = recipe.MCMC() }},
	{change: func(c *recipe.Config, o *TrainerOptions, _ []scene.Camera) {
		c.Splats, o.Interludes = 2000, &Interludes{}
	}},
}

// freePasses of a step move next to nothing: one workgroup, or a few numbers of each.
var freePasses = []string{"begin", "scan_spine", "find_appearance", "appearance_adam", "track_errors", "join_packets",
	"settle"}

// otherKernels are of no unit of a training: they measure, draw finished models, or are there for checks alone.
var otherKernels = []string{"bench_copy", "bench_fma", "bench_shared", "count_pairs", "lpips_conv", "lpips_distance",
	"lpips_input", "lpips_pool", "match_nearest", "match_tiles", "pack", "project_bwd", "project_pages", "sift_blur",
	"sift_describe", "sift_extrema", "sift_halve", "sift_input", "sift_orient", "verify"}

// recordedOf records the units of a training.
func recordedOf(t *testing.T, d *Device, v variation) map[recipe.Kind]*vk.Recorder {
	t.Helper()
	cams, cfg, o := planCameras(8, 64, 48), recipe.Default(), TrainerOptions{Depths: make([]scene.Depths, 8)}
	cfg.Carve = 1
	if v.change != nil {
		v.change(&cfg, &o, cams)
	}
	t.Setenv("VKSPLAT_LOOKBACK", cmp.Or(v.lookback, "1"))
	return must.Get(Record(d.dev, max(v.devices, 1), cams, cfg, o))(t)
}

// dispatch is a recorded pass: its kernel without the suffix of a precision or of processors.
type dispatch struct {
	kernel   string
	indirect bool // the device decides how many workgroups there are
}

var kernelVariant = regexp.MustCompile(`_(mixed|handed|packed|processor)$`)

func dispatchesOf(r *vk.Recorder) (list []dispatch) {
	kernel := regexp.MustCompile(`^ *\d+ (\w+)`)
	for line := range strings.Lines(r.String()) {
		if found := kernel.FindStringSubmatch(line); found != nil {
			list = append(list, dispatch{kernelVariant.ReplaceAllString(found[1], ""), strings.Contains(line, "[indirect ")})
		}
	}
	return list
}

// kernelOf returns the kernel of a name; nil for copies and fills.
func kernelOf(name string) *vk.Kernel {
	if i := slices.IndexFunc(shaders.All, func(k *vk.Kernel) bool { return k.Name == name }); i >= 0 {
		return shaders.All[i]
	}
	return nil
}

// passRow is a kernel's row of the table of passes: what its header begins with, and its bindings.
func passRow(t *testing.T, k *vk.Kernel) string {
	t.Helper()
	source := string(must.Get(os.ReadFile("../shaders/" + k.Name + ".comp"))(t))
	header := regexp.MustCompile(`(?s)\n// ` + k.Name + `:? (.*?)\n//   reads`).FindStringSubmatch(source)
	if header == nil {
		t.Fatalf("the header of %s does not say what it is and what it reads", k.Name)
	}
	about := regexp.MustCompile(`(?s)\. [A-Z].*`).ReplaceAllString(strings.NewReplacer("\n// ", " ", "|",
		`\|`).Replace(header[1]), "")
	var reads, writes []string
	for _, b := range k.Bindings {
		if b.Access != vk.Write {
			reads = append(reads, b.Name)
		}
		if b.Access != vk.Read {
			writes = append(writes, b.Name)
		}
	}
	return fmt.Sprintf("| %s | %s | %s -> %s |\n", k.Name, strings.TrimSuffix(about, "."), strings.Join(reads, ", "),
		strings.Join(writes, ", "))
}

// TestPassTable wants every kernel to run in a unit of some variation, and those of steps to have a cost or to be free
// and to stand in ARCHITECTURE.md.
func TestPassTable(t *testing.T) {
	const file, begin, end = "../ARCHITECTURE.md", "<!-- passes, made by make docs -->\n", "<!-- end of passes -->\n"
	d, table, ran := testDevice(t), strings.Builder{}, map[string]bool{}
	table.WriteString("| kernel | what it does | reads -> writes |\n|---|---|---|\n")
	for i, v := range variations {
		units := recordedOf(t, d, v)
		if i > 0 && v.name != "" {
			fmt.Fprintf(&table, "| **%s** | | |\n", v.name)
		}
		for _, p := range dispatchesOf(units[recipe.Step]) {
			if k := kernelOf(p.kernel); k != nil && !ran[p.kernel] {
				table.WriteString(passRow(t, k))
				ran[p.kernel] = true
				checkCost(t, p.kernel, v.uncounted)
			}
		}
	}
	page := string(must.Get(os.ReadFile(file))(t))
	before, rest, found := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, end)
	switch made := before + begin + table.String() + end + after; {
	case !found || !ended:
		t.Errorf("%s has no table of passes", file)
	case *update:
		must.Do(t, os.WriteFile(file, []byte(made), 0o666))
	case made != page:
		t.Errorf("the passes of %s are not those of steps; write them again: make docs", file)
	}
}

func checkCost(t *testing.T, kernel string, uncounted bool) {
	t.Helper()
	label := kernel
	if strings.HasPrefix(kernel, "sort_") {
		label += " (depth)"
	}
	_, known := (&bench.Counts{SortBits: 8}).Cost(label)
	if free := slices.Contains(freePasses, kernel); known == free && !uncounted {
		t.Errorf("%s has a cost in pipeline/bench: %t; is listed as free: %t", kernel, known, free)
	}
}

// TestEveryKernelRuns wants every kernel to be recorded in some unit, or to be listed as one of no unit.
func TestEveryKernelRuns(t *testing.T) {
	d, ran := testDevice(t), map[string]bool{}
	for _, v := range variations {
		for _, r := range recordedOf(t, d, v) {
			for _, p := range dispatchesOf(r) {
				ran[p.kernel] = true
			}
		}
	}
	for _, k := range shaders.All {
		if !kernelVariant.MatchString(k.Name) && ran[k.Name] == slices.Contains(otherKernels, k.Name) {
			t.Errorf("%s must either be in a unit or in otherKernels; in a unit: %t", k.Name, ran[k.Name])
		}
	}
}

// TestFailedUnitsReadNoIsects wants the device to decide whether a pass that goes through the isects of tiles runs at
// all: in a unit after one that failed nobody writes tile_offsets, and its memory holds what others left there.
func TestFailedUnitsReadNoIsects(t *testing.T) {
	d, n := testDevice(t), 0
	for _, v := range variations {
		for _, p := range dispatchesOf(recordedOf(t, d, v)[recipe.Step]) {
			k := kernelOf(p.kernel)
			if k == nil || !slices.Contains(k.Bindings, vk.Binding{Name: "tile_offsets", Access: vk.Read}) {
				continue
			}
			if n++; !p.indirect {
				t.Errorf("%s: %s reads tile_offsets, and runs in a unit without work", v.name, p.kernel)
			}
		}
	}
	if n < 3 {
		t.Errorf("%d passes read tile_offsets, want rasterize, find_places and rasterize_bwd", n)
	}
}

// TestFinishRunsBeside wants the report of a step between the passes of the loss, and no barrier after it.
func TestFinishRunsBeside(t *testing.T) {
	d := testDevice(t)
	views, init, scale, cfg := partialScene(t)
	tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
	defer tr.Close()
	for tr.shards.first.e.setup.bands = 1; tr.shards.first.e.setup.bands < 3; tr.shards.first.e.setup.bands++ {
		r := vk.NewRecorder(d.dev)
		tr.shards.first.e.setup.record(r, tr.shards.first.e.programs.frames[0], recipe.Step)
		if text := r.String(); !regexp.MustCompile(`\d finish.*\n *\d+ loss_grad`).MatchString(text) {
			t.Errorf("a barrier after finish, or another place:\n%s", text)
		}
	}
}
