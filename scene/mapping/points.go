package mapping

import (
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
	"vksplat/scene/adjust"
	"vksplat/scene/twoview"
)

const (
	// leastAngle is the angle between the rays to a point from the two photos that see it from most different sides;
	// points at less say too little about their distance.
	leastAngle = 1.5 * math.Pi / 180
	// mostOff is how many pixels an observation is off at most.
	mostOff = 4
)

// chunk is how many tracks a goroutine works on at a time.
const chunk = 256

// eachTrack calls f for all tracks, on all cores. f may change its track alone.
func (d *draft) eachTrack(f func(i int, t *track)) {
	parallel.For((len(d.tracks)+chunk-1)/chunk, func(c int) {
		for i := c * chunk; i < min(len(d.tracks), (c+1)*chunk); i++ {
			f(i, &d.tracks[i])
		}
	})
}

// extend triangulates the tracks of photos that have no point, and adds sights to those that have one where they are at
// most most pixels off.
func (d *draft) extend(photos []int, most float64) {
	touched := make([]bool, len(d.tracks))
	for _, i := range photos {
		for _, p := range d.places[i] {
			touched[p.track] = true
		}
	}
	d.eachTrack(func(i int, t *track) {
		switch {
		case !touched[i]:
		case t.ok:
			d.complete(t, most)
		default:
			triangulate(d, i, t)
		}
	})
}

// complete adds the sights of placed photos that are at most most pixels off a track's point.
func (d *draft) complete(t *track, most float64) {
	for k := range t.sights {
		s := &t.sights[k]
		if !s.used && d.placed[s.Photo] && d.off(s.Sight, t.x) <= most {
			s.used = true
		}
	}
}

// off returns by how many pixels a point is projected off a keypoint; infinity where the photo does not show it.
func (d *draft) off(s Sight, x [3]float64) float64 {
	p := &d.poses[s.Photo]
	at := d.in.Photos[s.Photo].Keypoints[s.Keypoint]
	u, v, ok := d.optics[p.Lens].Miss(geom.Add(geom.Rotate(p.R, x), p.T), float64(at[0]), float64(at[1]), nil)
	if !ok {
		return math.Inf(1)
	}
	return math.Hypot(u, v)
}

// centre returns where a photo was taken.
func centre(d *draft, photo int32) [3]float64 {
	p := &d.poses[photo]
	return geom.TranslationOf(geom.Transposed(p.R), p.T)
}

// triangulate seeks the point of a track that most of its sights agree on.
func triangulate(d *draft, id int, t *track) {
	var poses []adjust.Pose
	var sights []twoview.Sight
	var places []int
	for k, s := range t.sights {
		if !d.placed[s.Photo] {
			continue
		}
		p, at := &d.poses[s.Photo], d.in.Photos[s.Photo].Keypoints[s.Keypoint]
		if look, ok := twoview.Look(d.optics[p.Lens], float64(at[0]), float64(at[1])); ok {
			poses, sights, places = append(poses, *p), append(sights, look), append(places, k)
		}
	}
	if len(poses) < 2 {
		return
	}
	p, ok := twoview.Triangulate(poses, sights, twoview.Options{Pixels: mostOff, Key: d.o.Seed ^ uint64(id)})
	if !ok || p.Angle < leastAngle {
		return
	}
	t.x, t.ok = p.X, true
	for _, i := range p.Inliers {
		t.sights[places[i]].used = true
	}
}

// refinePoints refines the points that photos show, but for those of chosen tracks, with all cameras fixed.
func (d *draft) refinePoints(photos, chosen []bool, loss adjust.Loss, steps int, gain float64) {
	d.eachTrack(func(i int, t *track) {
		if chosen != nil && chosen[i] || !t.seen(photos) {
			return
		}
		var room [16]adjust.Sight
		sights := room[:0]
		for _, s := range t.sights {
			if at := d.in.Photos[s.Photo].Keypoints[s.Keypoint]; s.used {
				p := &d.poses[s.Photo]
				sights = append(sights, adjust.Sight{Pose: p, Optics: d.optics[p.Lens], X: float64(at[0]),
					Y: float64(at[1])})
			}
		}
		t.x = adjust.Point(t.x, sights, adjust.Options{Loss: loss, Steps: steps, Gain: gain})
	})
}

// seen reports whether a track has a point that one of some photos shows.
func (t *track) seen(photos []bool) bool {
	return t.ok && slices.ContainsFunc(t.sights, func(s sight) bool { return s.used && photos[s.Photo] })
}

func (t *track) drop() {
	t.ok = false
	for k := range t.sights {
		t.sights[k].used = false
	}
}

func angleBetween(a, b [3]float64) float64 {
	c := geom.Cross(a, b)
	return math.Atan2(math.Sqrt(geom.Dot(c, c)), geom.Dot(a, b))
}

// wide reports whether two observations of a track's point are from sides that differ by leastAngle.
func wide(d *draft, t *track) bool {
	var room [16][3]float64
	rays := room[:0]
	for _, s := range t.sights {
		if !s.used {
			continue
		}
		r := geom.Sub(t.x, centre(d, s.Photo))
		for _, other := range rays {
			if angleBetween(r, other) >= leastAngle {
				return true
			}
		}
		rays = append(rays, r)
	}
	return false
}

// filter drops observations that are off by more than most pixels, and points that are left with fewer than two or with
// too small an angle.
func (d *draft) filter(most float64) {
	d.eachTrack(func(_ int, t *track) {
		if !t.ok {
			return
		}
		for k := range t.sights {
			s := &t.sights[k]
			s.used = s.used && d.off(s.Sight, t.x) <= most
		}
		if !wide(d, t) {
			t.drop()
		}
	})
}
