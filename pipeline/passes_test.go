package pipeline

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/bench"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/vk"
)

// freePasses of a step move next to nothing: one workgroup, or a few numbers of each.
var freePasses = []string{"begin", "scan_spine", "find_appearance", "appearance_adam", "track_errors"}

// dispatch is a recorded pass: its kernel, and the names of what it reads and writes, as the kernel has them and as the
// buffers have them.
type dispatch struct {
	kernel        string
	reads, writes []string
	indirect      bool // the device decides how many workgroups there are
}

// dispatchesOf records a step on a scene.
func dispatchesOf(t *testing.T, d *Device,
	of func(testing.TB) ([]TrainView, *scene.Splats, float64, recipe.Config)) (list []dispatch) {
	t.Helper()
	views, init, scale, cfg := of(t)
	tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
	defer tr.Close()
	r := vk.NewRecorder(d.dev)
	tr.shards.first.e.setup.record(r, tr.shards.first.e.programs.frames[0], recipe.Step)
	variant := regexp.MustCompile(`_(mixed|handed)$`)
	kernel, binding := regexp.MustCompile(`^ *\d+ (\w+)`), regexp.MustCompile(`(\w+)=([^(=]*)\(([a-z+]+) \d+\)`)
	for line := range strings.Lines(r.String()) {
		p := dispatch{indirect: strings.Contains(line, "[indirect ")}
		for _, b := range binding.FindAllStringSubmatch(line, -1) {
			p.kernel = variant.ReplaceAllString(kernel.FindStringSubmatch(line)[1], "")
			if strings.Contains(b[3], "read") {
				p.reads = append(p.reads, b[1], b[2])
			}
			if strings.Contains(b[3], "write") {
				p.writes = append(p.writes, b[1], b[2])
			}
		}
		if p.kernel != "" {
			list = append(list, p)
		}
	}
	return list
}

// passRow is a row of ARCHITECTURE.md's table of passes.
type passRow struct{ kernels, reads, writes []string }

// passTable reads the first table of passes.
func passTable(t *testing.T) (rows []passRow) {
	t.Helper()
	text := must.Get(os.ReadFile("../ARCHITECTURE.md"))(t)
	_, table, _ := strings.Cut(string(text), "| pass | kernels | reads -> writes |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	words := regexp.MustCompile(`[a-z][a-z0-9_*]+`)
	for line := range strings.Lines(strings.ReplaceAll(table, "chunks", "chunk")) {
		if c := strings.Split(line, "|"); !strings.HasPrefix(line, "|--") && len(c) == 5 {
			reads, writes, _ := strings.Cut(c[3], "->")
			rows = append(rows, passRow{words.FindAllString(c[2], -1), words.FindAllString(reads, -1),
				words.FindAllString(writes, -1)})
		}
	}
	return rows
}

// has reports whether the row names a kernel.
func (r passRow) has(kernel string) bool {
	return slices.ContainsFunc(r.kernels, func(pattern string) bool {
		matched, _ := path.Match(pattern, kernel)
		return matched
	})
}

// TestPassTable wants every kernel of a step to have a cost or to be free, and to stand in ARCHITECTURE.md. The scene
// must have every pass that a setting turns on.
func TestPassTable(t *testing.T) {
	d, rows := testDevice(t), passTable(t)
	seen := map[string]bool{}
	for _, lookback := range []string{"0", "1"} {
		t.Setenv("VKSPLAT_LOOKBACK", lookback)
		for _, p := range dispatchesOf(t, d, partialScene) {
			seen[p.kernel] = true
		}
	}
	for kernel := range seen {
		label := kernel
		if strings.HasPrefix(kernel, "sort_") {
			label += " (depth)"
		}
		_, known := (&bench.Counts{SortBits: 8}).Cost(label)
		if free := slices.Contains(freePasses, kernel); known == free {
			t.Errorf("%s has a cost in pipeline/bench: %t; is listed as free: %t", kernel, known, free)
		}
		if !slices.ContainsFunc(rows, func(r passRow) bool { return r.has(kernel) }) {
			t.Errorf("%s is in no row of ARCHITECTURE.md's passes", kernel)
		}
	}
	for _, kernel := range freePasses {
		if !seen[kernel] {
			t.Errorf("no step runs %s", kernel)
		}
	}
}

// TestFailedUnitsReadNoIsects wants the device to decide whether a pass that goes through the isects of tiles runs at
// all: in a unit after one that failed nobody writes tile_offsets, and its memory holds what others left there.
func TestFailedUnitsReadNoIsects(t *testing.T) {
	n := 0
	for _, p := range dispatchesOf(t, testDevice(t), partialScene) {
		if !slices.Contains(p.reads, "tile_offsets") {
			continue
		}
		if n++; !p.indirect {
			t.Errorf("%s reads tile_offsets, and runs in a unit without work", p.kernel)
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

// TestPassTableBuffers compares what rows say to be read and written with what the kernels declare, as far as any row
// names it; but for the sorts, whose buffers change their names. No pass stands between picture and loss, so that
// every buffer has one name.
func TestPassTableBuffers(t *testing.T) {
	rows := passTable(t)
	passes := dispatchesOf(t, testDevice(t), promiseScene)
	bound, named := map[string]bool{}, map[string]bool{}
	for _, p := range passes {
		for _, name := range slices.Concat(p.reads, p.writes) {
			bound[name] = true
		}
	}
	for _, r := range rows {
		for _, word := range slices.Concat(r.reads, r.writes) {
			named[word] = bound[word] && word != "counters"
		}
	}
	for _, r := range rows {
		reads, writes := r.buffers(passes)
		sorts := slices.ContainsFunc(r.kernels, func(k string) bool { return strings.HasPrefix(k, "sort_") })
		if len(writes) == 0 || sorts {
			continue
		}
		for _, side := range []struct {
			verb string
			row  []string
			got  map[string]bool
		}{{"reads", r.reads, reads}, {"writes", r.writes, writes}} {
			for name := range named {
				if said := slices.Contains(side.row, name); named[name] && said != side.got[name] {
					t.Errorf("%v %s %s: %t, but %t in ARCHITECTURE.md", r.kernels, side.verb, name,
						side.got[name], said)
				}
			}
		}
	}
}

// buffers returns what the row's kernels read that none of them wrote before, and what they write.
func (r passRow) buffers(passes []dispatch) (reads, writes map[string]bool) {
	reads, writes = map[string]bool{}, map[string]bool{}
	for _, p := range passes {
		if !r.has(p.kernel) {
			continue
		}
		for _, name := range p.reads {
			reads[name] = reads[name] || !writes[name]
		}
		for _, name := range p.writes {
			writes[name] = true
		}
	}
	return reads, writes
}
