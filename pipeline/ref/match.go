package ref

import (
	"math"

	"vksplat/shaders/layout"
)

// twin: match_tiles match_nearest

// Those of the kernels: see shaders/shared/match.glsl.
const (
	DescriptorBytes = 128
	MatchTile       = 128
	MatchOne        = 512 * 512
	MatchNone       = math.MaxUint32
)

// MatchTiles returns for each descriptor of a [n] the two largest keys of those of b [m], tile of b by tile:
// [m / MatchTile][n]. Both numbers are whole tiles. Pairs for which counts is false are as different as can be.
func MatchTiles(a, b []byte, counts func(i, j int) bool) [][2]uint32 {
	n, m := len(a)/DescriptorBytes, len(b)/DescriptorBytes
	keys := make([][2]uint32, m/MatchTile*n)
	for i := range n {
		for j := range m {
			product := uint32(0)
			if counts(i, j) {
				for k := range DescriptorBytes {
					product += uint32(a[DescriptorBytes*i+k]) * uint32(b[DescriptorBytes*j+k])
				}
			}
			key := product<<7 | uint32(MatchTile-1-j%MatchTile)
			two := &keys[j/MatchTile*n+i]
			*two = [2]uint32{max(two[0], key), max(two[1], min(two[0], key))}
		}
	}
	return keys
}

// MatchAgrees says whether point b of the second photo agrees with the guide of a job for point a of the first. The
// operations are those of the kernel, each rounded.
func MatchAgrees(job *layout.MatchJob, a, b [2]float32) bool {
	times := func(p [2]float32, step, next int) (r [3]float32) {
		for k := range r {
			g := func(i int) float32 { return job.Guide[step*k+next*i] }
			r[k] = float32(float32(g(0)*p[0])+float32(g(1)*p[1])) + g(2)
		}
		return r
	}
	square := func(x, y float32) float32 { return float32(x*x) + float32(y*y) }
	at := times(a, 3, 1)
	if job.Planar != 0 {
		x, y := at[0]-float32(at[2]*b[0]), at[1]-float32(at[2]*b[1])
		return square(x, y) <= job.Limit*float32(at[2]*at[2])
	}
	back := times(b, 1, 3)
	residual := float32(float32(at[0]*b[0])+float32(at[1]*b[1])) + at[2]
	return float32(residual*residual) <= job.Limit*float32(square(at[0], at[1])+square(back[0], back[1]))
}

// MatchNearest returns for each of n descriptors the nearest one by keys [tiles][n], or MatchNone.
func MatchNearest(keys [][2]uint32, n int, least []uint32) []uint32 {
	nearest := make([]uint32, n)
	for i := range nearest {
		var most, second uint32
		for at := i; at < len(keys); at += n {
			for _, key := range keys[at] {
				product, place := key>>7, MatchTile-1-key%MatchTile
				if product > most {
					most, second = product, most
					nearest[i] = uint32(at/n*MatchTile) + place
				} else {
					second = max(second, product)
				}
			}
		}
		if second >= MatchOne || most < least[second] {
			nearest[i] = MatchNone
		}
	}
	return nearest
}
