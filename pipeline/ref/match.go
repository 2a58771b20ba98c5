package ref

import "math"

// twin: match_tiles match_nearest

// Those of the kernels: see shaders/shared/match.glsl.
const (
	DescriptorBytes = 128
	MatchTile       = 128
	MatchOne        = 512 * 512
	MatchNone       = math.MaxUint32
)

// MatchTiles returns for each descriptor of a [n] the two largest keys of those of b [m], tile of b by tile:
// [m / MatchTile][n]. Both numbers are whole tiles.
func MatchTiles(a, b []byte) [][2]uint32 {
	n, m := len(a)/DescriptorBytes, len(b)/DescriptorBytes
	keys := make([][2]uint32, m/MatchTile*n)
	for i := range n {
		for j := range m {
			product := uint32(0)
			for k := range DescriptorBytes {
				product += uint32(a[DescriptorBytes*i+k]) * uint32(b[DescriptorBytes*j+k])
			}
			key := product<<7 | uint32(MatchTile-1-j%MatchTile)
			two := &keys[j/MatchTile*n+i]
			*two = [2]uint32{max(two[0], key), max(two[1], min(two[0], key))}
		}
	}
	return keys
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
