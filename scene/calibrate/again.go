package calibrate

import (
	"cmp"
	"context"
	"slices"

	"vksplat/scene/adjust"
	"vksplat/scene/colmap"
	"vksplat/scene/twoview"
)

const (
	// A photo is placed again by leastAgain points or more, and by shareAgain of those that its features match.
	leastAgain, shareAgain = 30, 0.25
	// mostPartners is about how many photos, spread evenly over their names, one that stands apart is matched with, and
	// nearPartners how many of its neighbours by name, on either side.
	mostPartners, nearPartners = 100, 10
)

// Sight is a point where a photo shows it.
type Sight struct {
	X, Y  float64 // pixels of the photo's calibration
	Point int32   // a number of Capture's own
}

// Photo is a photo to match: one that stands apart, or another one with the points that it shows.
type Photo struct {
	Name          string // as of the capture's photos
	Width, Height int    // of its calibration
	Sights        []Sight
}

// Match finds in photos that stand apart points that others show, by features that they share: a list for each.
type Match func(ctx context.Context, apart, others []Photo) ([][]Sight, error)

// again places photos that stand apart by the points that matching finds in them, with the lenses and points that there
// are. It returns the network with these poses and observations, which m gets too, and the photos that stand apart
// still: their observations are left out.
func (n *network) again(ctx context.Context, m *colmap.Model, apart []int, match Match) (better *network, still []int,
	err error) {
	better = n.without(apart)
	if match == nil || len(apart) == 0 {
		return better, apart, nil
	}
	found, err := match(ctx, better.shown(apart), better.shown(n.partners(apart)))
	if err != nil {
		return better, apart, err
	}
	better.photos = slices.Clone(n.photos)
	for i, at := range apart {
		if i >= len(found) || !better.locate(at, found[i], m) {
			still = append(still, at)
		}
	}
	slices.SortStableFunc(better.seen, func(a, b adjust.Observation) int { return cmp.Compare(a.Pose, b.Pose) })
	return better, still, nil
}

// shown lists photos with their sights.
func (n *network) shown(photos []int) []Photo {
	place := map[int32]int{}
	list := make([]Photo, len(photos))
	for i, at := range photos {
		k := &n.lenses[n.photos[at].Lens]
		place[int32(at)], list[i] = i, Photo{Name: n.photos[at].Name, Width: k.Width, Height: k.Height}
	}
	for _, o := range n.seen {
		if i, wanted := place[o.Pose]; wanted {
			list[i].Sights = append(list[i].Sights, Sight{o.X, o.Y, o.Point})
		}
	}
	return list
}

// partners lists the training photos to match those with that stand apart.
func (n *network) partners(apart []int) (list []int) {
	var row []int
	for i := range n.photos {
		if !n.photos[i].HeldOut && !slices.Contains(apart, i) {
			row = append(row, i)
		}
	}
	byName := func(a, b int) int { return cmp.Compare(n.photos[a].Name, n.photos[b].Name) }
	slices.SortFunc(row, byName)
	near := make([]bool, len(row))
	for _, at := range apart {
		rank, _ := slices.BinarySearchFunc(row, at, byName)
		for i := max(0, rank-nearPartners); i < min(len(row), rank+nearPartners); i++ {
			near[i] = true
		}
	}
	step := (len(row) + mostPartners - 1) / mostPartners
	for i, at := range row {
		if near[i] || i%step == 0 {
			list = append(list, at)
		}
	}
	return list
}

// locate places a photo by sights, if enough of them agree, and gives it those that do.
func (n *network) locate(photo int, sights []Sight, m *colmap.Model) bool {
	p := &n.photos[photo]
	pixels, points := make([][2]float32, len(sights)), make([][3]float64, len(sights))
	for i, s := range sights {
		pixels[i], points[i] = [2]float32{float32(s.X), float32(s.Y)}, n.points[s.Point]
	}
	l, ok := twoview.Locate(n.lenses[p.Lens], true, pixels, points, twoview.Options{
		MinInliers: max(leastAgain, int(shareAgain*float64(len(sights))))})
	if !ok {
		return false
	}
	p.R, p.T = l.Pose.R, l.Pose.T
	m.Seen[p.image] = nil
	for _, i := range l.Inliers {
		s := &sights[i]
		n.seen = append(n.seen, adjust.Observation{Pose: int32(photo), Point: s.Point, X: s.X, Y: s.Y})
		m.Seen[p.image] = append(m.Seen[p.image], colmap.Seen{X: s.X, Y: s.Y, Point: n.keys[s.Point]})
	}
	return true
}
