package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"vksplat/vk"
)

// TestMain lets this binary be its own child, as the command is.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "-child" {
		if err := run(options{child: true, kernels: os.Args[3]}, os.Stdout); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestVariants(t *testing.T) {
	limits := vk.Limits{SubgroupSize: 64, MinSubgroupSize: 32, MaxSubgroupSize: 64}
	plain := &vk.Kernel{Name: "plain", Local: [3]uint32{256, 1, 1}, LocalSpecID: -1,
		Specs: []vk.Spec{{Name: "ON", ID: 1}}}
	sort := &vk.Kernel{Name: "sort", Local: [3]uint32{256, 1, 1}, LocalSpecID: 0, Specs: []vk.Spec{
		{Name: "WorkgroupSize", ID: 0, Default: 256}, {Name: "N_SUBGROUPS", ID: 3, Default: 8},
		{Name: "SUBGROUP_SIZE", ID: 4, Default: 32}}}
	single := &vk.Kernel{Name: "single", Local: [3]uint32{32, 1, 1}, LocalSpecID: 0, Specs: []vk.Spec{
		{Name: "WorkgroupSize", ID: 0, Default: 32}, {Name: "SUBGROUP_SIZE", ID: 1, Default: 32}}}
	for _, c := range []struct {
		kernel *vk.Kernel
		want   []variant
	}{
		{plain, []variant{{"plain", []uint32{0}}, {"plain ON", []uint32{1}}}},
		{sort, []variant{{"sort", []uint32{256, 8, 32}}, {"sort", []uint32{256, 4, 64}}}},
		{single, []variant{{"single", []uint32{32, 32}}, {"single", []uint32{64, 64}}}},
		{&vk.Kernel{Name: "none"}, []variant{{"none", nil}}},
	} {
		got := variants(c.kernel, limits)
		if !slices.EqualFunc(got, c.want,
			func(a, b variant) bool { return a.name == b.name && slices.Equal(a.spec, b.spec) }) {
			t.Errorf("%s: %v, want %v", c.kernel.Name, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	text := table([]row{
		{Kernel: "b", Device: "x", Workgroup: 64, Subgroup: 32,
			Stats: map[string]float64{"VGPRs": 24, "SGPRs": 16, "Spilled VGPRs": 3}},
		{Kernel: "a", Device: "y", Workgroup: 256, Subgroup: 16,
			Stats: map[string]float64{"Instruction Count": 12, "Spill Count": 0}},
		{Device: "z", Error: "gone"},
	})
	for _, want := range []string{
		"| b | x | 64 | 32 | 24 | 16 | 3 | - | - | - | - | - | - |\n",
		"| a | y | 256 | 16 | - | - | 0 | - | - | - | - | 12 | - |\n| b ",
		"Spills and scratch:\n\n- b on x, subgroup 32: spilled vector 3\n",
		"Not compiled:\n\n- z: gone\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("table lacks %q:\n%s", want, text)
		}
	}
}

func TestChoose(t *testing.T) {
	if _, err := choose("no_such_kernel"); err == nil {
		t.Error("an unknown kernel was accepted")
	}
}

// TestAMD compiles one kernel for one GPU that is not there.
func TestAMD(t *testing.T) {
	const icd = "/usr/share/vulkan/icd.d/radeon_icd.x86_64.json"
	if _, err := os.Stat(icd); err != nil {
		t.Skip("mesa-vulkan-drivers is not installed")
	}
	list, err := targets(options{amd: "navi21", amdICD: icd})
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, error %v", list, err)
	}
	rows := measure(list[0], "scan_reduce")
	if len(rows) != 1 || rows[0].Error != "" || rows[0].Stats["VGPRs"] == 0 || rows[0].Stats["Instructions"] == 0 {
		text, _ := json.Marshal(rows)
		t.Errorf("%s", text)
	}
}
