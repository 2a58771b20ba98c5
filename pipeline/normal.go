package pipeline

import (
	"fmt"

	"vksplat/scene"
)

// KnownNormals [n_views] are normals of surfaces that steps compare their picture with, by the cameras that are trained
// on. Nil: none are compared. A view may have none.
type KnownNormals []scene.NormalMap

func (k KnownNormals) used() bool { return len(k) > 0 }

func (k KnownNormals) check(cams []scene.Camera) error {
	if n := len(k); n > 0 && n != len(cams) {
		return fmt.Errorf("start training: normals of %d photos for %d cameras", n, len(cams))
	}
	for i := range k {
		if c := &cams[i]; len(k[i].Cells) > 0 && !k[i].Covers(c.Width, c.Height) {
			return fmt.Errorf("start training: photo %q is larger than its normals", c.Name)
		}
	}
	return nil
}

// size returns the words of a view in the table that normal_loss reads.
func (k KnownNormals) size(view int) int {
	if n := len(k[view].Cells); n > 0 {
		return 2 + n
	}
	return 0
}

func (k KnownNormals) put(words []uint32, view int) {
	m := &k[view]
	words[0], words[1] = uint32(m.Shift), uint32(m.Columns)
	copy(words[2:], m.Cells)
}
