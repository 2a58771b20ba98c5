package pipeline

import (
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/vk"
)

// profile returns a device as its profile has it.
func profile(t *testing.T, name string) (d vk.DeviceInfo) {
	t.Helper()
	must.Do(t, d.ReadProfile("../vk/profiles/"+name+".jsonc"))
	return d
}

// TestChooseRaster: the number of lanes, on which the order of sums hangs, does not follow the size of subgroups.
func TestChooseRaster(t *testing.T) {
	device := func(kind vk.DeviceType, least, size, groups uint32) (d vk.DeviceInfo) {
		d.Type = kind
		d.Limits.MinSubgroupSize, d.Limits.SubgroupSize, d.Limits.MaxComputeWorkgroupSubgroups = least, size, groups
		return d
	}
	for _, c := range []struct {
		name string
		d    vk.DeviceInfo
		want rasterShape
	}{
		{"NVIDIA", profile(t, "rtx3060"), rasterShape{256, 32, false, 64}},
		{"AMD", profile(t, "rx6600"), rasterShape{256, 32, false, 64}},
		{"AMD before RDNA", device(vk.Discrete, 64, 64, 32), rasterShape{256, 64, false, 64}},
		{"Intel", profile(t, "iris-xe"), rasterShape{256, 8, false, 64}},
		{"Intel's card", profile(t, "arc-a770"), rasterShape{256, 8, false, 64}},
		{"Intel from Xe2 on", device(vk.Integrated, 16, 32, 32), rasterShape{256, 16, false, 64}},
		{"Adreno", profile(t, "adreno-740"), rasterShape{256, 64, false, 64}},
		{"Apple", profile(t, "m2"), rasterShape{256, 32, false, 64}},
		{"Intel that lets nobody choose", device(vk.Integrated, 16, 16, 0), rasterShape{256, 16, false, 64}},
		{"lavapipe of 128 bits", device(vk.CPU, 4, 4, 0), rasterShape{64, 4, true, 256}},
		{"lavapipe of 256 bits", device(vk.CPU, 8, 8, 0), rasterShape{64, 8, true, 256}},
		{"lavapipe of 512 bits", device(vk.CPU, 16, 16, 0), rasterShape{64, 16, true, 256}},
	} {
		if got := chooseRaster(c.d); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
