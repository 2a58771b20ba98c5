package inspect

import (
	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// checkEnds looks for photos that were cut short, by the few bytes at their ends: decoding tells, too, but a run comes
// to some photos late or never.
func (r *Report) checkEnds(c *scene.Capture) {
	groups := scene.PhotoGroups(c.Cameras)
	cut := make([]bool, len(groups))
	parallel.For(len(groups), func(i int) { cut[i] = photo.CutShort(c.Cameras[groups[i].First].Path) })
	var names []string
	for i, g := range groups {
		if cut[i] {
			names = append(names, c.Cameras[g.First].PhotoName())
		}
	}
	r.about(SeverityWarning, "cut-photos", names, "%d of %d photos end early and cannot be decoded", len(names),
		len(groups))
}
