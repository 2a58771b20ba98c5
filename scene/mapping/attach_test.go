package mapping

import (
	"context"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
)

// TestAttach places a photo of which only a pair and a few points tell where it is, and leaves one out of which a pair
// alone does.
func TestAttach(t *testing.T) {
	for few, want := range map[int]bool{8: true, 0: false} {
		s := arc(8, 0.5)
		in := s.input()
		last := len(in.Photos) - 1
		seen := map[int32]int{} // keypoints of the last but one that the last has, too
		in.Pairs = slices.DeleteFunc(in.Pairs, func(p Pair) bool {
			for _, at := range p.Relation.Inliers {
				if m := p.Matches[at]; p.A == last-1 && p.B == last {
					seen[m[0]] = len(seen)
				}
			}
			return (p.A == last || p.B == last) && (p.A != last-1 || p.B != last)
		})
		for i := range in.Pairs {
			if p := &in.Pairs[i]; p.B == last-1 {
				p.Relation.Inliers = slices.DeleteFunc(p.Relation.Inliers, func(at int32) bool {
					n, shared := seen[p.Matches[at][1]]
					return shared && n >= few
				})
			}
		}
		m := must.Get(Map(context.Background(), in, Options{}))(t)
		turn, share := s.compare(m)
		if m.Placed[last] != want || len(seen) < leastAttached || turn > 0.2 || share > 0.02 {
			t.Errorf("%d points: placed %v, of %d matches, %g degrees and %g off", few, m.Placed, len(seen), turn,
				share)
		}
	}
}
