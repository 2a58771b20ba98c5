package pipeline

import (
	"testing"

	"vksplat/shaders/layout"
	"vksplat/vk"
)

// TestLooksBack checks on which devices workgroups are made to wait for each other.
func TestLooksBack(t *testing.T) {
	const nvidia, amd = 0x10DE, 0x1002
	for _, c := range []struct {
		kind   vk.DeviceType
		vendor uint32
		asked  string
		want   bool
	}{
		{vk.Discrete, nvidia, "", true}, {vk.Discrete, nvidia, "0", false}, {vk.Discrete, amd, "", false},
		{vk.Integrated, nvidia, "", false},
		{vk.CPU, nvidia, "", false}, {vk.CPU, 0x10005, "1", true},
	} {
		t.Setenv(lookbackVariable, c.asked)
		d := vk.DeviceInfo{Type: c.kind, Vendor: c.vendor,
			Limits: vk.Limits{SubgroupSize: 32, MinSubgroupSize: 32, MaxSubgroupSize: 32}}
		if got := chooseSort(d).lookback; got != c.want {
			t.Errorf("%v of vendor %#x, %s=%q: %v, want %v", c.kind, c.vendor, lookbackVariable, c.asked, got, c.want)
		}
	}
}

// TestChooseSort wants the sort that suits each device of a profile.
func TestChooseSort(t *testing.T) {
	t.Setenv(lookbackVariable, "")
	for name, want := range map[string]sortShape{
		"rtx3060":    {lookback: true, bits: 8, workgroup: 256, scan: 256, subgroup: 32},
		"rx6600":     {bits: 8, workgroup: 256, scan: 256, subgroup: 64},
		"arc-a770":   {bits: 8, workgroup: 128, scan: 256, subgroup: 16},
		"iris-xe":    {bits: 8, workgroup: 128, scan: 256, subgroup: 16},
		"m2":         {bits: 8, workgroup: 256, scan: 256, subgroup: 32},
		"adreno-740": {bits: 8, workgroup: 256, scan: 256, subgroup: 64},
	} {
		if got := chooseSort(profile(t, name)); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestSweepBits checks that the tables of all subgroups of a workgroup fit, and the digits of all passes of the widest
// keys.
func TestSweepBits(t *testing.T) {
	for subgroup, want := range map[uint32]int{4: 5, 8: 6, 16: 7, 32: 8, 64: 8} {
		bits := sweepBits(subgroup)
		passes := (32 + bits - 1) / bits
		if bits != want || layout.Group/int(subgroup)<<bits > layout.SortBlock || passes<<bits > layout.SortDigits ||
			passes > layout.SortPasses {
			t.Errorf("subgroups of %d: digits of %d bits in %d passes", subgroup, bits, passes)
		}
	}
}
