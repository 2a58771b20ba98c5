package depth

import (
	"math"

	"vksplat/internal/parallel"
	"vksplat/internal/philox"
	"vksplat/scene"
)

// mostKnown is how many pixels of a photo have a known depth at most: more say little more, and take memory.
const mostKnown = 1 << 18

// Known [cameras] are the pixels of each camera whose depth is known.
type Known [][]scene.KnownDepth

func (k Known) Counts() []int {
	counts := make([]int, len(k))
	for i, list := range k {
		counts[i] = len(list)
	}
	return counts
}

func (k Known) Count() (depths int) {
	for _, list := range k {
		depths += len(list)
	}
	return depths
}

func (k Known) Most() (n int) {
	for _, list := range k {
		n = max(n, len(list))
	}
	return n
}

// Scale brings depths to another unit.
func (k Known) Scale(factor float64) {
	parallel.For(len(k), func(i int) {
		for j := range k[i] {
			k[i][j].Depth = float32(float64(k[i][j].Depth) * factor)
		}
	})
}

// Add adds what else is known. A pixel may have several depths then.
func (k Known) Add(more Known) {
	for i := range k {
		k[i] = append(k[i], more[i]...)
	}
}

// streamThin is the third word of the Philox counter of thin; see package philox.
const streamThin = 0x10021

// thin leaves about mostKnown of a camera's pixels, chosen at random by their places alone.
func thin(list []scene.KnownDepth) []scene.KnownDepth {
	if len(list) <= mostKnown {
		return list
	}
	share := float64(mostKnown) / float64(len(list))
	kept := list[:0]
	for _, p := range list {
		bits := philox.Block([4]uint32{uint32(p.X), uint32(p.Y), streamThin, 0}, [2]uint32{})
		if philox.Uniform(bits[0]) < share {
			kept = append(kept, p)
		}
	}
	return kept
}

func pixel(x, y, depth float64) scene.KnownDepth {
	return scene.KnownDepth{X: uint16(x), Y: uint16(y), Depth: float32(depth)}
}

// Points of any depth are asked for of Camera.Project.
const nearest = 0

var farthest = math.Inf(1)
