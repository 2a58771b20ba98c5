package calibrate

import (
	"slices"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/adjust"
	"vksplat/scene/colmap"
	"vksplat/scene/photo"
)

// netPhoto is a photo of a network.
type netPhoto struct {
	Name    string
	R       [9]float64 // world to camera, as in scene.Camera
	T       [3]float64
	Lens    int // in network.lenses
	HeldOut bool
	Device  string // what took it, as photo.TakenWith names it

	image int // in the model
}

// network is a reconstruction with its observations.
type network struct {
	lenses []scene.Calibration
	ids    []uint32 // of lenses
	photos []netPhoto
	points [][3]float64
	keys   []uint64             // ids of the points
	seen   []adjust.Observation // Pose is a photo
	lost   map[int]bool         // points that the photos do not determine any more
}

// newNetwork takes the photos of a capture, whose model is m. Observations by other images, and of points that are not
// there, are left out.
func newNetwork(c *scene.Capture, m *colmap.Model) *network {
	n := &network{}
	paths := map[string]string{}
	for i := range c.Cameras {
		paths[c.Cameras[i].PhotoName()] = c.Cameras[i].Path
	}
	lens := map[uint32]int{}
	for i := range m.Images {
		if _, used := paths[colmap.PhotoName(c, &m.Images[i])]; used {
			n.ids = append(n.ids, m.Images[i].Camera)
		}
	}
	slices.Sort(n.ids)
	n.ids = slices.Compact(n.ids)
	for i, id := range n.ids {
		lens[id] = i
		n.lenses = append(n.lenses, m.Cameras[id])
	}
	places := make(map[uint64]int32, len(m.Points))
	for i, p := range m.Points {
		places[p.ID] = int32(i)
		n.points, n.keys = append(n.points, p.Pos), append(n.keys, p.ID)
	}
	for i := range m.Images {
		img := &m.Images[i]
		name := colmap.PhotoName(c, img)
		path, used := paths[name]
		r, ok := geom.RotationFromQuat(img.Quat)
		if !used || !ok {
			continue
		}
		for _, s := range m.Seen[i] {
			if at, known := places[s.Point]; known {
				n.seen = append(n.seen, adjust.Observation{Pose: int32(len(n.photos)), Point: at, X: s.X, Y: s.Y})
			}
		}
		n.photos = append(n.photos, netPhoto{Name: name, R: r, T: img.T, Lens: lens[img.Camera],
			HeldOut: c.HeldOut[name], Device: photo.TakenWith(path), image: i})
	}
	n.dropLone()
	return n
}

// dropLone drops the observations of points that fewer than two training photos show: they determine nothing, and with
// held-out photos there are more of them.
func (n *network) dropLone() {
	count, last := make([]int, len(n.points)), make([]int32, len(n.points)) // observations go by photo
	for _, o := range n.seen {
		if !n.photos[o.Pose].HeldOut && last[o.Point] != o.Pose+1 {
			count[o.Point]++
			last[o.Point] = o.Pose + 1
		}
	}
	n.seen = slices.DeleteFunc(n.seen, func(o adjust.Observation) bool { return count[o.Point] < 2 })
}

// training counts the training photos and their observations. Nothing else of held-out photos decides anything.
func (n *network) training() (photos, observations int) {
	for i := range n.photos {
		if !n.photos[i].HeldOut {
			photos++
		}
	}
	for _, o := range n.seen {
		if !n.photos[o.Pose].HeldOut {
			observations++
		}
	}
	return photos, observations
}

// pairs counts the pairs of observations of the same point, at least 1.
func (n *network) pairs() float64 {
	count, sum := make([]float64, len(n.points)), 1.0
	for _, o := range n.seen {
		count[o.Point]++
	}
	for _, k := range count {
		sum += k * k
	}
	return sum
}

// normalised returns the network with the mean training camera at the origin and the median of their distances 1:
// rounding and damping do not know of units.
func (n *network) normalised() *network {
	centres := make([][3]float64, len(n.photos))
	var trained [][3]float64
	for i, p := range n.photos {
		centres[i] = n.centre(i)
		if !p.HeldOut {
			trained = append(trained, centres[i])
		}
	}
	middle := mean(trained)
	distances := make([]float64, len(trained))
	for i, c := range trained {
		distances[i] = geom.Length(geom.Sub(c, middle))
	}
	scale := 1.0
	if d := geom.Quantile(distances, 0.5); d > 0 {
		scale = 1 / d
	}
	u := *n
	u.photos, u.points = slices.Clone(n.photos), slices.Clone(n.points)
	for i := range u.photos {
		u.photos[i].T = geom.TranslationOf(n.photos[i].R, geom.Scale(geom.Sub(centres[i], middle), scale))
	}
	for i, x := range n.points {
		u.points[i] = geom.Scale(geom.Sub(x, middle), scale)
	}
	return &u
}

// without returns the network without some photos' observations.
func (n *network) without(photos []int) *network {
	less := *n
	less.seen = slices.DeleteFunc(slices.Clone(n.seen), func(o adjust.Observation) bool {
		return slices.Contains(photos, int(o.Pose))
	})
	return &less
}

// names of photos.
func (n *network) names(photos []int) (list []string) {
	for _, at := range photos {
		list = append(list, n.photos[at].Name)
	}
	return list
}

// problem is the whole network with everything fixed.
func (n *network) problem() *adjust.Problem {
	p := &adjust.Problem{Points: n.points, PointsFixed: true, Observations: n.seen}
	for _, l := range n.lenses {
		p.Lenses = append(p.Lenses, adjust.Lens{Calibration: l})
	}
	for _, q := range n.photos {
		p.Poses = append(p.Poses, adjust.Pose{R: q.R, T: q.T, Lens: q.Lens, Fixed: true})
	}
	return p
}

// trial is a network's training photos as a problem, with the observations that judge it.
type trial struct {
	adjust.Problem
	judges []adjust.Observation
	photos []int // of each pose, in the network
	points []int // of each point, in the network
	lensOf []int // which lens each of the network's now is
}

// newTrial takes the training photos, holds back a share of their observations, and takes a share of the points that
// two others are of.
func newTrial(n *network, points, back float64) *trial {
	t := &trial{lensOf: make([]int, len(n.lenses))}
	poses := make([]int32, len(n.photos))
	for i, p := range n.photos {
		poses[i] = -1
		if !p.HeldOut {
			poses[i] = int32(len(t.photos))
			t.photos = append(t.photos, i)
			t.Poses = append(t.Poses, adjust.Pose{R: p.R, T: p.T, Lens: p.Lens})
		}
	}
	for i, l := range n.lenses {
		t.lensOf[i] = i
		t.Lenses = append(t.Lenses, adjust.Lens{Calibration: l})
	}
	held := make([]bool, len(n.seen))
	count, last := make([]int, len(n.points)), make([]int32, len(n.points))
	for i, o := range n.seen {
		held[i] = adjust.Drawn(n.keys[o.Point], n.photos[o.Pose].Name, back)
		if poses[o.Pose] >= 0 && !held[i] && last[o.Point] != o.Pose+1 { // a photo may show a point twice
			count[o.Point]++
			last[o.Point] = o.Pose + 1
		}
	}
	places := make([]int32, len(n.points))
	for i, c := range count {
		places[i] = -1
		if c >= 2 && adjust.Drawn(n.keys[i], "", points) {
			places[i] = int32(len(t.points))
			t.points = append(t.points, i)
			t.Points = append(t.Points, n.points[i])
		}
	}
	shows := make([]int, len(t.Poses))
	for i, o := range n.seen {
		o.Pose, o.Point = poses[o.Pose], places[o.Point]
		switch {
		case o.Pose < 0 || o.Point < 0:
		case held[i]:
			t.judges = append(t.judges, o)
		default:
			t.Observations = append(t.Observations, o)
			shows[o.Pose]++
		}
	}
	// A photo that shows too little stays, and says nothing: else all others would turn as it likes.
	for i := range t.Poses {
		t.Poses[i].Fixed = shows[i] < leastPlaced
	}
	stays := func(o adjust.Observation) bool { return t.Poses[o.Pose].Fixed }
	t.Observations, t.judges = slices.DeleteFunc(t.Observations, stays), slices.DeleteFunc(t.judges, stays)
	return t
}

// clone copies what Solve changes.
func (t *trial) clone() *trial {
	c := *t
	c.Lenses = slices.Clone(t.Lenses)
	c.Poses = slices.Clone(t.Poses)
	c.Points = slices.Clone(t.Points)
	return &c
}
