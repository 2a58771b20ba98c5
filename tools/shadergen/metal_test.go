package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

// TestMetal has SPIRV-Cross translate each kernel to Metal, as MoltenVK does, for the language of macOS 11 and 13. Of
// the operations that Metal's compiler does not optimise (see TestPrecise) innermost loops have no more than these. A
// pixel's distance from a splat (raster.glsl) and what a splat leaves of its light (blend.glsl) round alike on the way
// there and back; sums over bands have one order (reduce_slots.glsl); lpips_distance and match_tiles say themselves
// why. SPIRV-Cross before 2024 does not translate products of four bytes, and MoltenVK does not report them as
// accelerated: match_tiles_packed is not used there.
func TestMetal(t *testing.T) {
	if !filetest.Long() {
		t.Skip("VKSPLAT_LONG=1 translates the kernels to Metal")
	}
	if _, err := exec.LookPath("spirv-cross"); err != nil {
		t.Skip("spirv-cross is not installed")
	}
	allowed := map[string]int{"count_pairs": 2, "lpips_distance": 5, "match_tiles": 23, "rasterize": 9,
		"rasterize_bwd": 6, "reduce_slots": 88}
	for _, path := range must.Get(filepath.Glob("../../shaders/spv/*.spv"))(t) {
		kernel := plainName(path)
		if strings.HasSuffix(path, "_packed.spv") {
			continue
		}
		for _, version := range []string{"20300", "30000"} {
			cmd := exec.Command("spirv-cross", path, "--msl", "--msl-version", version, "--msl-argument-buffers",
				"--msl-texture-buffer-native")
			if metal, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s, version %s: %v\n%.300s", path, version, err, metal)
			} else if n := slowInLoops(string(metal)); n > allowed[kernel] {
				t.Errorf("%s, version %s: %d operations without optimisation in innermost loops, %d are known to be needed",
					path, version, n, allowed[kernel])
			}
		}
	}
}

var (
	slowFunction = regexp.MustCompile(`\[\[clang::optnone\]\] .* (\w+)\(`)
	loopHead     = regexp.MustCompile(`^(for|while) \(`)
)

// slowInLoops counts the calls of functions without optimisation in loops that hold no loop.
func slowInLoops(metal string) (n int) {
	type block struct {
		loop, outer bool // outer: it holds a loop
		calls       int
	}
	slow, blocks, before := map[string]bool{}, []block{{}}, ""
	for line := range strings.Lines(metal) {
		line = strings.TrimSpace(line)
		b := &blocks[len(blocks)-1]
		switch {
		case strings.HasPrefix(line, "[[clang::optnone]]"):
			slow[slowFunction.FindStringSubmatch(line)[1]] = true
		case line == "{":
			blocks = append(blocks, block{loop: loopHead.MatchString(before)})
		case strings.HasPrefix(line, "}"):
			ended := *b
			ended.loop = ended.loop || strings.HasPrefix(line, "} while(") && line != "} while(false);"
			blocks = blocks[:len(blocks)-1]
			b = &blocks[len(blocks)-1]
			switch {
			case !ended.loop:
				b.outer, b.calls = b.outer || ended.outer, b.calls+ended.calls
			default:
				b.outer = true
				if !ended.outer {
					n += ended.calls
				}
			}
		default:
			for name := range slow {
				b.calls += strings.Count(line, name+"(")
			}
		}
		before = line
	}
	return n
}
