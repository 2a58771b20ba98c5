package mapping

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/scene/adjust"
	"vksplat/scene/twoview"
)

const (
	// A photo is attached by a pair with leastAttached inliers, if leastScaled points at least, and half of those that
	// it shows, agree on how far it is.
	leastAttached, leastScaled = 100, 5
	// mostScales of the points are tried for the distance: a photo that shows more was refused by all of them before.
	mostScales = 100
)

// attach places a photo that shows too few points to be located, as those where two strips of photos meet: by its best
// pair with a placed photo, which says how it is turned and in which direction it is, and by few points, which say how
// far. It returns the first photo for which that works, if any.
func (d *draft) attach() []int {
	best := make([]*Pair, len(d.in.Photos)) // of those that are not placed
	for _, p := range d.pairs {
		i, n := p.A, len(p.Relation.Inliers)
		if d.placed[i] {
			i = p.B
		}
		if d.placed[p.A] != d.placed[p.B] && n >= leastAttached &&
			(best[i] == nil || n > len(best[i].Relation.Inliers)) {
			best[i] = p
		}
	}
	for i, p := range best {
		if p == nil || d.dropped[i] > mostDropped || !d.settled[d.in.Photos[i].Lens] || d.ctx.Err() != nil {
			continue
		}
		shown := d.shown(i)
		if len(shown) < leastScaled {
			continue
		}
		if pose, ok := attached(d, i, p, shown); ok {
			d.poses[i], d.placed[i] = pose, true
			d.count++
			return []int{i}
		}
	}
	return nil
}

// attached returns the pose of a photo by a pair and some points. ok is false if too few of these agree.
func attached(d *draft, photo int, p *Pair, shown []place) (best adjust.Pose, ok bool) {
	view := func(photo int) twoview.View {
		in := &d.in.Photos[photo]
		return twoview.View{Optics: d.optics[in.Lens], FocalKnown: true, Points: in.Keypoints}
	}
	var inliers [][2]int32
	other := p.A + p.B - photo
	for _, at := range p.Relation.Inliers {
		if m := p.Matches[at]; p.A == photo {
			inliers = append(inliers, [2]int32{m[1], m[0]})
		} else {
			inliers = append(inliers, m)
		}
	}
	r := twoview.Relate(view(other), view(photo), inliers, twoview.Options{Key: d.key(other, photo)})
	from := &d.poses[other]
	pose := adjust.Pose{R: geom.Product(r.R, from.R), Lens: d.in.Photos[photo].Lens}
	most := max(leastScaled, (len(shown)+1)/2) - 1
	for k := 0; k < len(shown); k += 1 + len(shown)/mostScales {
		s := shown[k]
		t := &d.tracks[s.track]
		at := d.in.Photos[photo].Keypoints[t.sights[s.sight].Keypoint]
		ray, _ := d.optics[pose.Lens].Ray(float64(at[0]), float64(at[1]))
		y := geom.Rotate(r.R, geom.Add(geom.Rotate(from.R, t.x), from.T)) // y + scale r.T is along the ray
		along := geom.Cross(ray, r.T)
		scale := -geom.Dot(geom.Cross(ray, y), along) / geom.Dot(along, along)
		if !(scale > 0) || math.IsInf(scale, 0) {
			continue
		}
		old, agree := d.poses[photo], 0
		d.poses[photo] = pose
		d.poses[photo].T = geom.Add(geom.Rotate(r.R, from.T), geom.Scale(r.T, scale))
		for _, o := range shown {
			if t := &d.tracks[o.track]; d.off(t.sights[o.sight].Sight, t.x) <= mostOff {
				agree++
			}
		}
		if agree > most {
			most, best, ok = agree, d.poses[photo], true
		}
		d.poses[photo] = old
	}
	return best, ok
}
