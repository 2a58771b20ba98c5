package ref

// twin: scan_reduce scan_spine scan_apply scan_tiles

// Scan returns the exclusive prefix sum of counts and their total.
func Scan(counts []uint32) (offsets []uint32, total uint32) {
	offsets = make([]uint32, len(counts))
	for i, c := range counts {
		offsets[i] = total
		total += c
	}
	return offsets, total
}
