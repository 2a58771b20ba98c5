package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// TestPrecise counts the operations of each kernel that nothing may be contracted with. SPIRV-Cross, and so MoltenVK,
// makes a call of a function without optimisation of each, so they are for what two passes must round alike: the tiles
// of a splat, the light that it leaves, sums over bands. lpips_distance and match_tiles say themselves why.
func TestPrecise(t *testing.T) {
	allowed := map[string]int{"count_pairs": 2, "count_tiles": 23, "emit_isects": 46, "lpips_distance": 6, "match_tiles": 27,
		"project": 8, "project_lens": 8, "project_pages": 8, "rasterize": 12, "rasterize_bwd": 8, "reduce_slots": 119, "scan_tiles": 23}
	files := must.Get(filepath.Glob("../../shaders/spv/*.spv"))(t)
	if len(files) == 0 {
		t.Fatal("no kernels")
	}
	for _, path := range files {
		kernel := plainName(path)
		if n := preciseOps(must.Get(os.ReadFile(path))(t)); n > allowed[kernel] {
			t.Errorf("%s: %d precise sums and products, %d are known to be needed", path, n, allowed[kernel])
		}
	}
}

// plainName is the name of a compiled kernel without those of its variants.
func plainName(path string) string {
	kernel := strings.TrimSuffix(filepath.Base(path), ".spv")
	for _, variant := range []string{"_handed", "_depth", "_mixed", "_packed", "_processor"} {
		kernel = strings.TrimSuffix(kernel, variant)
	}
	return kernel
}

// preciseOps counts a module's sums, differences and products with the decoration NoContraction.
func preciseOps(spirv []byte) (n int) {
	const fAdd, fSub, fMul, noContraction = 129, 131, 133, 42
	precise := map[uint32]bool{}
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(spirv[at:]) }
	for at := 20; at < len(spirv); at += 4 * int(word(at)>>16) {
		switch word(at) & 0xffff {
		case opDecorate:
			precise[word(at+4)] = precise[word(at+4)] || word(at+8) == noContraction
		case fAdd, fSub, fMul:
			if precise[word(at+8)] {
				n++
			}
		}
	}
	return n
}
