package inspect

import (
	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// checkEnds looks for photos that were cut short, by the few bytes at their ends: decoding tells, too, but a run comes
// to some photos late or never.
func (r *Report) checkEnds(c *scene.Capture) {
	names, all := photosThat(c, photo.CutShort)
	r.about(SeverityWarning, "cut-photos", names, "%d of %d photos cannot be decoded: the files end early",
		len(names), all)
}

// photosThat names the photos whose files are of a kind, and counts all.
func photosThat(c *scene.Capture, are func(path string) bool) (names []string, all int) {
	groups := scene.PhotoGroups(c.Cameras)
	found := make([]bool, len(groups))
	parallel.For(len(groups), func(i int) { found[i] = are(c.Cameras[groups[i].First].Path) })
	for i, g := range groups {
		if found[i] {
			names = append(names, c.Cameras[g.First].PhotoName())
		}
	}
	return names, len(groups)
}
