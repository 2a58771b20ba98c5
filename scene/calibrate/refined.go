package calibrate

import (
	"context"
	"fmt"

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
	at := make(map[string]int, len(refined))
	for i := range refined {
		at[refined[i].PhotoName()] = i
	}
	done := make([]bool, len(n.lenses))
	for i := range n.photos {
		p := &n.photos[i]
		k, trained := at[p.Name]
		if !trained {
			continue
		}
		p.R, p.T = refined[k].R, refined[k].T
		if !done[p.Lens] {
			n.lenses[p.Lens], done[p.Lens] = n.lenses[p.Lens].Refitted(&given[k], &refined[k]), true
		}
	}
	if need := n.bytes(); o.Bytes > 0 && need > o.Bytes {
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
