package pipeline

import (
	"os"

	"vksplat/pipeline/recipe"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// lookbackVariable chooses between kernels that look back, whose workgroups wait for each other, and those that do not:
// 1 and 0. Bytes do not depend on it. Software Vulkan can run the former with LP_NUM_THREADS=1 only: see
// vk.DeviceInfo.ForwardProgress.
const lookbackVariable = "VKSPLAT_LOOKBACK"

// looksBack reports whether to use kernels that look back: where workgroups may wait for each other.
func looksBack(d *vk.DeviceInfo) bool {
	switch os.Getenv(lookbackVariable) {
	case "0":
		return false
	case "1":
		return true
	}
	return d.ForwardProgress()
}

// tallies are counters, from 0, of kernels that look back: digits of keys, tickets, sums of blocks.
type tallies struct {
	all   vk.Slice[uint32]
	depth vk.Slice[uint32] // of the sort by depth, or by score
	band  vk.Slice[uint32] // the next two
	tiles vk.Slice[uint32] // of the sort by tile
	scan  vk.Slice[uint32] // of scan_tiles
	used  bool             // a band has used its share
}

// makeTallies declares the unit's tallies, which begin clears.
func (v *view) makeTallies() {
	if !v.s.sort.lookback || v.kind == recipe.Reset || v.kind == recipe.Carve {
		return
	}
	const align = 64 // words: a view begins at a multiple of 256 bytes, the most that a device may ask for
	sort := (layout.SortDigits + layout.SortPasses + align - 1) / align * align
	scan := 1 + (max(v.s.model.capacity(), v.s.projections())+layout.Group-1)/layout.Group
	t := &v.tallies
	t.all = vk.ScratchOf[uint32](v.r, "tallies", 2*sort+scan)
	t.depth, t.band = t.all.At(0, sort), t.all.At(sort, sort+scan)
	t.tiles, t.scan = t.band.At(0, sort), t.band.At(sort, scan)
}

func (v *view) bandTallies() *tallies {
	if v.tallies.used {
		v.r.Fill(v.tallies.band.View, 0)
	}
	v.tallies.used = true
	return &v.tallies
}
