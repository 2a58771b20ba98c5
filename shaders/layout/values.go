package layout

// What an invocation does in a round: bench_fma multiplications with additions, bench_shared reads of shared memory or
// shuffles.
const (
	FMARound    = 8 * 16
	SharedRound = 4 * 32
)

// Tiles returns how many tiles cover a side of a picture.
func Tiles(pixels int) int { return (pixels + TileSize - 1) / TileSize }

// Bit is a truth value as kernels have it.
func Bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
