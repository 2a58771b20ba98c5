package layout

// Tiles returns how many tiles so many pixels take.
func Tiles(pixels int) int { return (pixels + TileSize - 1) / TileSize }

// Bit is a truth value as kernels have it.
func Bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
