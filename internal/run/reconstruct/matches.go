package reconstruct

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"vksplat/pipeline"
	"vksplat/pipeline/matching"
	"vksplat/scene"
	"vksplat/scene/mapping"
	"vksplat/scene/pairs"
	"vksplat/scene/twoview"
)

// guessedFocal times the longer side of a photo is taken for a focal length that nothing tells (COLMAP).
const guessedFocal = 1.2

// input is what mapping works on, without pairs.
func input(photos []Photo, found []Features) *mapping.Input {
	in := &mapping.Input{}
	lenses := map[string]int{}
	for i, p := range photos {
		f := &found[i]
		at, known := lenses[p.Lens]
		if !known {
			at = len(in.Lenses)
			lenses[p.Lens] = at
			in.Lenses = append(in.Lenses, lensOf(p.Path, f.Width, f.Height))
		}
		one := mapping.Photo{Name: p.Name, Lens: at, Keypoints: make([][2]float32, len(f.Points))}
		for k, x := range f.Points {
			one.Keypoints[k] = [2]float32{x.X, x.Y}
		}
		in.Photos = append(in.Photos, one)
	}
	return in
}

// Match matches the photos that are worth it, and finds the geometry of each pair, of weak ones twice. progress is
// called with the number of pairs that are done once, of how many.
func Match(ctx context.Context, d *pipeline.Device, photos []Photo, found []Features, o pairs.Options,
	progress func(done, of int)) ([]mapping.Pair, error) {
	list, chosen := make([]matching.Photo, len(photos)), make([]pairs.Photo, len(photos))
	gps := placesOf(photos)
	for i, p := range photos {
		list[i] = matching.Photo{Descriptors: found[i].Descriptors}
		for _, x := range found[i].Points {
			list[i].Places = append(list[i].Places, [2]float32{x.X, x.Y})
		}
		chosen[i] = pairs.Photo{Name: p.Name, Sequence: p.Sequence, Descriptors: found[i].Descriptors,
			Located: gps.located[i] && gps.apart, East: gps.at[i][0], North: gps.at[i][1]}
	}
	m, err := pipeline.NewMatcher(d, list, matching.Options{})
	if err != nil {
		return nil, err
	}
	defer m.Close() // what it found is with the host
	worth := pairs.Choose(chosen, o)
	scores, err := m.Score(ctx, worth, o.Scored)
	if err != nil {
		return nil, err
	}
	worth = pairs.Promising(worth, scores, o)
	in := input(photos, found)
	views, err := viewsOf(in)
	if err != nil {
		return nil, err
	}
	relate := func(of [][2]int, guides []matching.Guide, progress func(done, of int)) ([]mapping.Pair, error) {
		result := make([]mapping.Pair, len(of))
		var wait sync.WaitGroup
		slots := make(chan struct{}, 4*runtime.GOMAXPROCS(0))
		err := m.Match(ctx, of, guides, func(pair int, matches [][2]int32) error {
			slots <- struct{}{}
			wait.Go(func() {
				a, b := of[pair][0], of[pair][1]
				r := twoview.Relate(views[a], views[b], matches, twoview.Options{Key: uint64(a)<<32 | uint64(b)})
				result[pair] = mapping.Pair{A: a, B: b, Matches: matches, Relation: r}
				<-slots
			})
			progress(pair+1, len(of))
			return nil
		})
		wait.Wait()
		return result, err
	}
	result, err := relate(worth, nil, progress)
	if err != nil {
		return nil, err
	}
	result = slices.DeleteFunc(result, unrelated)
	weak, again, guides := weakOf(result)
	more, err := relate(again, guides, func(int, int) {})
	for k, p := range more {
		if old := &result[weak[k]]; !unrelated(p) && len(p.Relation.Inliers) > len(old.Relation.Inliers) {
			*old = p
		}
	}
	return result, err
}

func unrelated(p mapping.Pair) bool {
	return p.Relation.Kind == twoview.Unrelated || p.Relation.Kind == twoview.Watermark
}

// weakInliers is below how many inliers a pair is matched again near its geometry. That finds matches which something
// alike elsewhere in the photo had hidden; strong pairs gain observations by it, but no accuracy.
const weakInliers = 60

// weakOf lists the weak ones of pairs, and the geometry that guides their second matching.
func weakOf(list []mapping.Pair) (places []int, again [][2]int, guides []matching.Guide) {
	for i, p := range list {
		if r := &p.Relation; len(r.Inliers) < weakInliers {
			g := matching.Guide{Matrix: r.F, Pixels: guidePixels}
			if r.Kind == twoview.Rotation {
				g.Planar, g.Matrix = true, r.H
			}
			places, again, guides = append(places, i), append(again, [2]int{p.A, p.B}), append(guides, g)
		}
	}
	return places, again, guides
}

// guidePixels is how far off a pair's geometry a guided match is at most: as inliers of twoview.Relate.
const guidePixels = 4

// viewsOf are the photos as twoview knows them.
func viewsOf(in *mapping.Input) ([]twoview.View, error) {
	optics := make([]*scene.Optics, len(in.Lenses))
	for i, l := range in.Lenses {
		var err error
		if optics[i], err = l.Optics(l.Width, l.Height); err != nil {
			return nil, err
		}
	}
	views := make([]twoview.View, len(in.Photos))
	for i, p := range in.Photos {
		views[i] = twoview.View{Optics: optics[p.Lens], FocalKnown: in.Lenses[p.Lens].FocalKnown, Points: p.Keypoints}
	}
	return views, nil
}
