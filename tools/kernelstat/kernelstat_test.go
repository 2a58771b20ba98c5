package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/vk"
)

var update = flag.Bool("update", false, "write testdata/baseline.tsv")

// TestMain lets this binary be its own child, as the command is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-child" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// baseline has what the kernels of training steps cost on GPUs that are not there. Its first line is the driver; the
// others are, between tabs, the GPU, the kernel, its spilt registers, its bytes of scratch, and its cycles.
const baseline = "testdata/baseline.tsv"

// TestSteps compiles the kernels of training steps as older Mesa does for AMD. A new spill, or a tenth more cycles than
// in the baseline, is to be avoided or to be written down: go test ./tools/kernelstat -update
func TestSteps(t *testing.T) {
	o := options{gpus: "vega10,navi21,gfx1100", step: true}
	list, err := targets(o)
	if err != nil {
		t.Skip(err)
	}
	old := strings.Split(strings.TrimSpace(string(must.Get(os.ReadFile(baseline))(t))), "\n")
	var now []string
	for _, target := range list {
		for _, r := range target.measure(o) {
			if now == nil && r.Driver != old[0] && !*update {
				t.Skipf("the baseline is of %s, here is %q %s", old[0], r.Driver, r.Error)
			}
			if now == nil {
				now = append(now, r.Driver)
			}
			if r.Error != "" {
				t.Fatalf("%s: %s %s", r.GPU, r.Name, r.Error)
			}
			now = append(now, fmt.Sprintf("%s\t%s\t%d\t%d\t%d", r.GPU, r.Name, r.value(spills), r.value(scratch),
				r.cost()))
		}
	}
	if *update {
		must.Do(t, os.WriteFile(baseline, []byte(strings.Join(now, "\n")+"\n"), 0o666))
		return
	}
	for _, text := range worse(old[1:], now[1:]) {
		t.Error(text)
	}
}

// worse lists what lines of now have more of than those of old.
func worse(old, now []string) (list []string) {
	was := map[string][]string{}
	for _, line := range old {
		f := strings.Split(line, "\t")
		was[f[0]+" "+f[1]] = f
	}
	for _, line := range now {
		f := strings.Split(line, "\t")
		before, known := was[f[0]+" "+f[1]]
		if !known {
			list = append(list, "the baseline lacks "+f[0]+" "+f[1])
			continue
		}
		for i, column := range []struct {
			what string
			room float64
		}{{"spilt registers", 1}, {"bytes of scratch", 1}, {"cycles", 1.1}} {
			if number(f[2+i]) > column.room*number(before[2+i]) {
				list = append(list, fmt.Sprintf("%s %s has %s %s, not %s", f[0], f[1], f[2+i], column.what,
					before[2+i]))
			}
		}
	}
	return list
}

func number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func TestWorse(t *testing.T) {
	old := []string{"a\tk\t0\t0\t100", "b\tk X\t2\t8\t10"}
	for _, c := range []struct {
		now  string
		want bool
	}{
		{"a\tk\t0\t0\t110", false}, {"a\tk\t0\t0\t111", true}, {"a\tk\t1\t0\t90", true},
		{"a\tk\t0\t4\t90", true}, {"b\tk X\t2\t8\t9", false}, {"b\tk\t2\t8\t9", true},
	} {
		if got := worse(old, []string{c.now}); len(got) > 0 != c.want {
			t.Errorf("%q: %q", c.now, got)
		}
	}
}

func TestForms(t *testing.T) {
	k := &vk.Kernel{Name: "k", LocalSpecID: 0, Specs: []vk.Spec{{Name: "WorkgroupSize", ID: 0, Default: 256},
		{Name: "SUBGROUP_SIZE", ID: 3, Default: 32}, {Name: "KEEP_STATES", ID: 4}, {Name: "PACKED_STATES", ID: 5},
		{Name: "BITS", ID: 6, Default: 8}}}
	base := form{Form: vk.Form{Kernel: k, Spec: []uint32{128, 16, 0, 0, 4}}}
	got := []string{base.name()}
	for _, f := range switched(base.Form) {
		got = append(got, (&form{Form: f}).name())
	}
	want := []string{"k BITS=4", "k KEEP_STATES BITS=4", "k KEEP_STATES PACKED_STATES BITS=4"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPage(t *testing.T) {
	text := page([]row{
		{Name: "b", Vendor: "A", GPU: "x", Driver: "one 1", Step: true, Subgroup: 32,
			Stats: map[string]float64{"VGPRs": 24, "Latency": 9, "Inverse Throughput": 4, "Spilled VGPRs": 3}},
		{Name: "b", Vendor: "A", GPU: "y", Step: true, Subgroup: 64, Stats: map[string]float64{"VGPRs": 20, "Latency": 8}},
		{Name: "a", Vendor: "B", GPU: "z", Driver: "two 2", Subgroup: 16,
			Stats: map[string]float64{"GPRs": 5, "Instructions": 12, "Scratch": 8}},
		{Vendor: "B", GPU: "z", Error: "gone"},
	})
	for _, want := range []string{
		"\n## A, one 1\n\n| kernel | x | y |\n|---|---|---|\n| b | 32: 24, 9/4, **3 spilt** | 64: 20, 8 |\n",
		"| b | x 3 spilt |\n| a | z 8 B |\n", "\n- z: gone\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}
