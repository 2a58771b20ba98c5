package mapping

import "vksplat/scene/adjust"

// Missing says why a photo is not placed.
type Missing struct {
	Photo   int
	Points  int // of the model that its matches lead to
	Best    int // the placed photo with which it has most matches; -1 if it has none with any
	Matches int // verified ones with Best
	Part    int // photos that hang together with it, itself included, without those that are placed
	First   int // the first of these
}

// model returns what was found.
func (d *draft) model() *Model {
	m := &Model{Poses: make([]adjust.Pose, len(d.poses)), Placed: d.placed, Moments: d.moments}
	for _, l := range d.lenses {
		m.Lenses = append(m.Lenses, l.Calibration)
	}
	for i, placed := range d.placed {
		if placed {
			m.Poses[i] = d.poses[i]
		}
	}
	for i := range d.tracks {
		t := &d.tracks[i]
		if !t.ok {
			continue
		}
		p := Point{X: t.x}
		for _, s := range t.sights {
			if s.used {
				p.Track = append(p.Track, s.Sight)
				p.Error += d.off(s.Sight, t.x)
			}
		}
		if len(p.Track) < 2 { // a photo that was dropped last showed it
			continue
		}
		p.Error /= float64(len(p.Track))
		m.Points = append(m.Points, p)
	}
	m.Missing = d.missing()
	return m
}

func (d *draft) missing() (list []Missing) {
	at := make([]int, len(d.placed))
	for i, placed := range d.placed {
		if at[i] = -1; !placed {
			at[i] = len(list)
			list = append(list, Missing{Photo: i, Best: -1, Points: len(d.shown(i))})
		}
	}
	var apart []*Pair
	for i := range d.in.Pairs {
		p := &d.in.Pairs[i]
		n := len(p.Relation.Inliers)
		switch a, b := d.placed[p.A], d.placed[p.B]; {
		case !a && !b && n > 0:
			apart = append(apart, p)
		case a != b:
			out, in := p.A, p.B
			if a {
				out, in = in, out
			}
			if m := &list[at[out]]; n > m.Matches {
				m.Best, m.Matches = in, n
			}
		}
	}
	for _, members := range components(len(d.placed), apart) {
		for _, i := range members {
			if at[i] >= 0 {
				list[at[i]].Part, list[at[i]].First = len(members), members[0]
			}
		}
	}
	return list
}
