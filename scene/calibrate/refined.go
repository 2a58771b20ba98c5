package calibrate

import (
	"context"

	"vksplat/scene"
	"vksplat/scene/adjust"
	"vksplat/scene/colmap"
)

// Refined returns the model of a capture whose training cameras were refined from given, both in the capture's own
// frame. The lenses are the refined ones, of held-out photos too where they share them. Points are where the refined
// cameras see them, and held-out photos where these points and lenses place them, as in Capture; those that show too
// few points keep their poses, and unplaced names them. ok is false for captures that are no COLMAP model.
func Refined(ctx context.Context, c *scene.Capture, given, refined []scene.Camera) (files scene.Files,
	unplaced []string, ok bool, err error) {
	m, ok, err := colmap.ReadModel(c)
	if err != nil || !ok {
		return nil, nil, ok, err
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
	if err := n.movePoints(ctx); err != nil {
		return nil, nil, true, err
	}
	if unplaced, err = n.place(ctx); err != nil {
		return nil, nil, true, err
	}
	files, err = n.files(m, nil)
	return files, unplaced, true, err
}

// movePoints moves the points to where the training photos see them.
func (n *network) movePoints(ctx context.Context) error {
	t := newTrial(n, 1, 0)
	for i := range t.Poses {
		t.Poses[i].Fixed = true
	}
	if _, err := adjust.Solve(ctx, &t.Problem, adjust.Options{Loss: robust, Gain: 1e-5, Steps: 6}); err != nil {
		return err
	}
	for i, at := range t.points {
		n.points[at] = t.Points[i]
	}
	return nil
}
