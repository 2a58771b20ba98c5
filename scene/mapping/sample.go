package mapping

import (
	"cmp"
	"slices"

	"vksplat/internal/parallel"
)

const (
	// A sample of tracks has samplePart of each of a photo's parts, sampleAcross of which are side by side, and
	// samplePair of each pair of photos, or as many as there are.
	sampleAcross, samplePart, samplePair = 4, 8, 8
)

// sample chooses tracks that determine the photos that are free about as well as all do: of each part of a photo and of
// each pair of photos those that most photos show.
func (d *draft) sample(free []bool) (chosen []bool) {
	lengths := make([]int, len(d.tracks))
	d.eachTrack(func(i int, t *track) {
		for _, s := range t.sights {
			if s.used {
				lengths[i]++
			}
		}
	})
	photos := placed(free)
	picked := make([][]int32, len(photos))
	parallel.Workers(len(photos), len(photos), func() func(i int) {
		pairs := make([]int, len(d.placed))
		return func(i int) {
			clear(pairs)
			list := d.shown(photos[i])
			slices.SortFunc(list, func(a, b place) int {
				return cmp.Or(lengths[b.track]-lengths[a.track], int(a.track-b.track))
			})
			var parts [sampleAcross * sampleAcross]int
			for _, p := range list {
				t := &d.tracks[p.track]
				if !t.sights[p.sight].used {
					continue
				}
				part := &parts[d.part(t.sights[p.sight].Sight, sampleAcross)]
				few := *part < samplePart
				for _, s := range t.sights {
					few = few || s.used && int(s.Photo) != photos[i] && pairs[s.Photo] < samplePair
				}
				if !few {
					continue
				}
				picked[i] = append(picked[i], p.track)
				*part++
				for _, s := range t.sights {
					if s.used {
						pairs[s.Photo]++
					}
				}
			}
		}
	})
	chosen = make([]bool, len(d.tracks))
	for _, list := range picked {
		for _, i := range list {
			chosen[i] = true
		}
	}
	return chosen
}
