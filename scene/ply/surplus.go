package ply

import (
	"fmt"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

// surplus is Surplus for a file of size bytes, as far as the header says where its last row ends.
func (h *plyHeader) surplus(vertex int, size int64) (note string, err error) {
	left := size - h.bytes
	for i := range h.elements {
		e := &h.elements[i]
		row := e.rowBytes(h.format)
		if !h.fixed(e) || row > 0 && e.count > left/row { // the file may end in an element after the vertices
			return "", nil
		}
		left -= e.count * row
	}
	return Surplus("byte", left, h.elements[vertex].count, h.elements[vertex].rowBytes(h.format))
}

// Surplus judges how many bytes, or other units, follow the last of n rows of a given size, in a file of any format.
// Where they are whole rows, or as many for each row, the header counts wrong: what was read is not what was written.
// Others mean nothing, and the note says that they are there.
func Surplus(unit string, surplus, n, row int64) (note string, err error) {
	const chance = 64 // fewer bytes may come out even by chance: a line break, a filled block
	const hint = "the program that wrote it counts wrongly: export it with another version, or in another format"
	switch {
	case surplus <= 0:
		return "", nil
	case row > 0 && surplus%row == 0:
		err = fmt.Errorf("the file continues for %s of %s after the %d that the header declares",
			wording.Count(surplus/row, "more row"), wording.Count(row, unit), n)
	case n > 1 && (n >= chance || unit != "byte") && surplus%n == 0 && surplus/n < row:
		err = fmt.Errorf("%d %ss follow the last row, %d for each of the %d: rows have %d, not %d as the header says",
			surplus, unit, surplus/n, n, row+surplus/n, row)
	default:
		return fmt.Sprintf("the file has %s more than its header says, not read", wording.Count(surplus, unit)), nil
	}
	return "", &fault.Error{Err: err, Hint: hint}
}
