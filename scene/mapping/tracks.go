package mapping

import (
	"cmp"
	"slices"
)

// track is the keypoints that show one point, at most one of each photo, and that point once it is triangulated.
type track struct {
	sights []sight // by photo
	x      [3]float64
	ok     bool // it has a point
}

type sight struct {
	Sight
	used bool // it is an observation of the track's point
}

// place is a sight in a track.
type place struct{ track, sight int32 }

// forest joins keypoints into tracks: union-find whose sets know their keypoints.
type forest struct {
	first  []int   // of each photo, the node of its first keypoint
	parent []int32 // of a node
	sights [][]Sight
}

// buildTracks joins the inliers of pairs, those of pairs with many first: they are right most often. A match that would
// give a track two keypoints of one photo is left out, so that one wrong match does not spoil two tracks.
func buildTracks(in *Input, pairs []*Pair) []track {
	f := forest{}
	nodes := 0
	for _, p := range in.Photos {
		f.first = append(f.first, nodes)
		nodes += len(p.Keypoints)
	}
	f.parent, f.sights = make([]int32, nodes), make([][]Sight, nodes)
	for i := range f.parent {
		f.parent[i] = int32(i)
	}
	order := slices.Clone(pairs)
	slices.SortStableFunc(order, func(a, b *Pair) int {
		return cmp.Compare(len(b.Relation.Inliers), len(a.Relation.Inliers))
	})
	for _, p := range order {
		for _, at := range p.Relation.Inliers {
			match := p.Matches[at]
			f.join(Sight{int32(p.A), match[0]}, Sight{int32(p.B), match[1]})
		}
	}
	var list []track
	for i, sights := range f.sights {
		if f.parent[i] == int32(i) && len(sights) > 1 {
			t := track{}
			for _, s := range sights {
				t.sights = append(t.sights, sight{Sight: s})
			}
			list = append(list, t)
		}
	}
	return list
}

func (f *forest) find(i int32) int32 {
	for f.parent[i] != i {
		f.parent[i] = f.parent[f.parent[i]]
		i = f.parent[i]
	}
	return i
}

// root returns the root of a keypoint's set.
func (f *forest) root(s Sight) int32 {
	at := f.find(int32(f.first[s.Photo]) + s.Keypoint)
	if f.sights[at] == nil {
		f.sights[at] = []Sight{s}
	}
	return at
}

// join unites the sets of two keypoints unless both have keypoints of the same photo.
func (f *forest) join(a, b Sight) {
	i, k := f.root(a), f.root(b)
	if i == k {
		return
	}
	if len(f.sights[i]) < len(f.sights[k]) {
		i, k = k, i
	}
	if merged, ok := mergeSights(f.sights[i], f.sights[k]); ok {
		f.parent[k] = i
		f.sights[i], f.sights[k] = merged, nil
	}
}

// mergeSights merges two lists ordered by photo. ok is false if a photo is in both.
func mergeSights(a, b []Sight) (list []Sight, ok bool) {
	list = make([]Sight, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].Photo == b[0].Photo:
			return nil, false
		case a[0].Photo < b[0].Photo:
			list, a = append(list, a[0]), a[1:]
		default:
			list, b = append(list, b[0]), b[1:]
		}
	}
	return append(append(list, a...), b...), true
}
