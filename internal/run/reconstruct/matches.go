package reconstruct

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"

	"vksplat/pipeline"
	"vksplat/pipeline/features"
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
	lenses, moments := map[string]int{}, map[string]int{"": 0}
	for i, p := range photos {
		f := &found[i]
		at, known := lenses[p.Lens]
		if !known {
			at = len(in.Lenses)
			lenses[p.Lens] = at
			in.Lenses = append(in.Lenses, lensOf(&p, f.Width, f.Height))
		}
		one := mapping.Photo{Name: p.Name, Lens: at, Given: p.Place, Keypoints: make([][2]float32, len(f.Points))}
		for k, x := range f.Points {
			one.Keypoints[k] = [2]float32{x.X, x.Y}
		}
		if _, known := moments[p.Moment]; !known {
			moments[p.Moment] = len(moments)
		}
		one.Moment = moments[p.Moment]
		in.Photos = append(in.Photos, one)
	}
	return in
}

// toMatch returns photos as they are matched, and as pairs of them are chosen.
func toMatch(in *mapping.Input, photos []Photo, found []Features, o pairs.Options) (list []matching.Photo,
	chosen []pairs.Photo, err error) {
	list, chosen = make([]matching.Photo, len(photos)), make([]pairs.Photo, len(photos))
	gps := placesOf(photos)
	for i, p := range photos {
		f := &found[i]
		list[i] = matching.Photo{Load: f.AllDescriptors, Features: len(f.Points), Places: in.Photos[i].Keypoints}
		chosen[i] = pairs.Photo{Name: p.Name, Sequence: p.Sequence, Located: gps.located[i] && gps.apart,
			East: gps.at[i][0], North: gps.at[i][1]}
		if len(photos) > o.All { // what photos show counts
			all, err := f.AllDescriptors()
			if err != nil {
				return nil, nil, err
			}
			chosen[i].Descriptors = bytes.Clone(all[:min(len(all), pairs.Described*features.DescriptorBytes)])
		}
	}
	return list, chosen, nil
}

// Match matches the photos that are worth it, and finds the geometry of each pair, of weak ones twice: with fresh, only
// of pairs that have at least one photo of which it is true. progress is called with the number of pairs that are done
// once, of how many.
func Match(ctx context.Context, d *pipeline.Device, photos []Photo, found []Features, fresh []bool, o pairs.Options,
	progress func(done, of int)) ([]mapping.Pair, error) {
	in := input(photos, found)
	list, chosen, err := toMatch(in, photos, found, o)
	if err != nil {
		return nil, err
	}
	m, err := pipeline.NewMatcher(d, list, matching.Options{})
	if err != nil {
		return nil, err
	}
	defer m.Close() // what it found is with the host
	worth := pairs.Choose(chosen, o)
	if fresh != nil {
		worth = slices.DeleteFunc(worth, func(p [2]int) bool { return !fresh[p[0]] && !fresh[p[1]] })
	}
	scores, err := m.Score(ctx, worth, o.Scored)
	if err != nil {
		return nil, err
	}
	worth = pairs.Promising(worth, scores, o)
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
	weak, again, guides := weakOf(in, result)
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

const (
	// A pair with weakInliers to fewer than strongInliers is matched again near its geometry. That finds matches which
	// something alike elsewhere in the photo had hidden. Strong pairs gain observations by it, but no accuracy; the
	// geometry of weaker ones may be chance, which such matches would confirm: 16 inliers of noise become 128.
	weakInliers, strongInliers = 25, 60
	// guidePixels is how far off a pair's geometry a guided match is at most: as inliers of twoview.Relate.
	guidePixels = 4
)

// weakOf lists the weak ones of pairs of lenses that do not bend lines, and the geometry that guides their second
// matching.
func weakOf(in *mapping.Input, list []mapping.Pair) (places []int, again [][2]int, guides []matching.Guide) {
	straight := func(photo int) bool {
		k := &in.Lenses[in.Photos[photo].Lens]
		info, _ := k.Model.Info()
		return info.Focals > 0 && !info.Fish && !slices.ContainsFunc(k.Params[info.Focals+2:],
			func(x float64) bool { return x != 0 })
	}
	for i, p := range list {
		if r, n := &p.Relation, len(p.Relation.Inliers); n >= weakInliers && n < strongInliers && straight(p.A) &&
			straight(p.B) {
			g := matching.Guide{Matrix: r.F, Pixels: guidePixels}
			if r.Kind == twoview.Rotation {
				g.Planar, g.Matrix = true, r.H
			}
			places, again, guides = append(places, i), append(again, [2]int{p.A, p.B}), append(guides, g)
		}
	}
	return places, again, guides
}

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
		info, _ := in.Lenses[p.Lens].Model.Info() // a fisheye must be known to be related, if only by a guess
		views[i] = twoview.View{Optics: optics[p.Lens], FocalKnown: in.Lenses[p.Lens].FocalKnown || info.Fish,
			Points: p.Keypoints}
	}
	return views, nil
}
