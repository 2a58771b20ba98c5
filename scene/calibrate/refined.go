package calibrate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"vksplat/scene"
	"vksplat/scene/colmap"
)

// Refined returns the model of a capture whose training cameras were refined from given, both in the capture's own
// frame. The lenses are the refined ones, of held-out photos too where they share them. Points are where the refined
// cameras see them, and held-out photos where these points and lenses place them, as in Capture. note says which keep
// their poses, "" if none does: those that show too few points, or all, with the points, where an adjustment takes more
// than o.Bytes. ok is false for captures that are no COLMAP model.
func Refined(ctx context.Context, c *scene.Capture, given, refined []scene.Camera, o Options) (files scene.Files,
	note string, ok bool, err error) {
	m, ok, err := colmap.ReadModel(c)
	if err != nil || !ok {
		return nil, "", ok, err
	}
	n := newNetwork(c, m)
	n.refit(c, m, given, refined)
	if need := pointBytes(int64(len(n.seen)), int64(len(n.points))); o.Bytes > 0 && need > o.Bytes {
		note = fmt.Sprintf("points and held-out photos stay where they are given: to adjust them to refined cameras takes "+
			"%d MiB of memory, and %d MiB are there", need>>20, o.Bytes>>20)
		files, err = n.files(m, nil)
		return files, note, true, err
	}
	if err := n.movePoints(ctx); err != nil {
		return nil, "", true, err
	}
	res := &Result{}
	if res.Unplaced, err = n.place(ctx); err != nil {
		return nil, "", true, err
	}
	files, err = n.files(m, nil)
	return files, res.UnplacedText(), true, err
}

// RefinedBytes is about how much memory Refined takes of a capture, or a little more, by the size of the file of points
// alone; 0 for captures that are no COLMAP model.
func RefinedBytes(c *scene.Capture, points int) int64 {
	const point, observation = 51, 8 // bytes of the file
	size := colmap.PointsSize(c)
	if size == 0 {
		return 0
	}
	return pointBytes(max(0, size-point*int64(points))/observation, int64(points))
}

// refit gives training photos their refined cameras. Photos of one camera had a lens for each of their sizes, which was
// refined by itself: all but one become cameras of their own. Held-out photos have the lens of their size.
func (n *network) refit(c *scene.Capture, m *colmap.Model, given, refined []scene.Camera) {
	type sized struct{ lens, width, height int }
	size, at := map[string]sized{}, make(map[string]int, len(refined))
	for i := range c.Cameras {
		k := &c.Cameras[i]
		size[k.PhotoName()] = sized{0, k.Width, k.Height}
	}
	for i := range refined {
		at[refined[i].PhotoName()] = i
	}
	of := func(p *netPhoto) sized { return sized{p.Lens, size[p.Name].width, size[p.Name].height} }
	unrefined, lenses, done := n.lenses, map[sized]int{}, make([]bool, len(n.lenses))
	n.lenses = slices.Clone(unrefined)
	for i := range n.photos {
		p := &n.photos[i]
		k, trained := at[p.Name]
		if !trained {
			continue
		}
		p.R, p.T = refined[k].R, refined[k].T
		lens, known := lenses[of(p)]
		if !known {
			if lens = p.Lens; done[lens] {
				lens = len(n.lenses)
				n.lenses = append(n.lenses, scene.Calibration{})
				n.ids = append(n.ids, freeID(m, n.ids))
			}
			done[p.Lens], lenses[of(p)] = true, lens
			n.lenses[lens] = unrefined[p.Lens].Refitted(&given[k], &refined[k])
		}
		p.Lens = lens
	}
	for i := range n.photos {
		p := &n.photos[i]
		if lens, known := lenses[of(p)]; p.HeldOut && known {
			p.Lens = lens
		}
	}
}

// freeID is the next id of a camera, above those of a model and those added to it.
func freeID(m *colmap.Model, added []uint32) uint32 {
	return max(slices.Max(slices.Collect(maps.Keys(m.Cameras))), added[len(added)-1]) + 1
}

// movePoints moves the points to where the training photos see them.
func (n *network) movePoints(ctx context.Context) error {
	t := newTrial(n, 1, 0)
	if err := t.adjustPoints(ctx, 6); err != nil {
		return err
	}
	for i, at := range t.points {
		n.points[at] = t.Points[i]
	}
	return nil
}
