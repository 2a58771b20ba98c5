package mapping

import (
	"slices"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/adjust"
	"vksplat/scene/twoview"
)

const (
	// leastPoints is how many points of the model a photo must show, as located, to be placed.
	leastPoints = 30
	fewPoints   = 15 // where no photo shows more
	// leastShare of the points that a photo shows must agree with its pose.
	leastShare = 0.25
	// batchShare: photos that show this share of what the best does are located with it.
	batchShare = 0.5
	// sureShare: photos whose points agree with their pose to this share of what the best do are placed with it; others
	// wait for better points.
	sureShare = 0.75
	// mostDropped is how often a photo is placed again whose pose was wrong, before nothing else can be placed.
	mostDropped = 2
	// mostShown is how many points of a model that grows are shown, about.
	mostShown = 20_000
	// wholeGrowth is by which factor a model grows before all of it is adjusted again.
	wholeGrowth = 1.25
)

// draft is a model that grows.
type draft struct {
	*mapper
	lenses    []adjust.Lens
	optics    []*scene.Optics
	poses     []adjust.Pose // of each photo
	placed    []bool
	count     int // placed
	tracks    []track
	dropped   []int  // how often a photo was taken out again
	failed    []int  // points that a photo showed when it could not be located
	principal []bool // of a lens: its principal point moves
	settled   []bool // of a lens: its focal length is known, or was adjusted
	moments   int    // whose photos are on a rig
}

func newDraft(m *mapper) *draft {
	d := &draft{mapper: m, placed: make([]bool, len(m.in.Photos)), failed: make([]int, len(m.in.Photos)),
		dropped: make([]int, len(m.in.Photos)),
		settled: make([]bool, len(m.lenses)), principal: make([]bool, len(m.lenses)), tracks: slices.Clone(m.tracks)}
	for i := range d.tracks {
		d.tracks[i].sights = slices.Clone(d.tracks[i].sights)
	}
	for i, k := range m.lenses {
		k.Params = slices.Clone(k.Params)
		d.lenses = append(d.lenses, adjust.Lens{Calibration: k})
		d.settled[i] = m.in.Lenses[i].FocalKnown
	}
	for _, p := range m.in.Photos {
		d.poses = append(d.poses, adjust.Pose{R: geom.Identity, Lens: p.Lens})
	}
	return d
}

// begin places the photos of a pair. ok is false if they have too few points.
func (d *draft) begin(pair int) (ok bool, err error) {
	p, c := d.pairs[pair], &d.motions[pair]
	b := &d.poses[p.B]
	b.R, b.T = c.r, c.t
	d.placed[p.A], d.placed[p.B] = true, true
	d.count = 2
	if d.optics, err = prepare(d.mapper.lenses); err != nil {
		return false, err
	}
	for range 2 {
		d.extend([]int{p.A, p.B}, mostOff)
		if points(d) < leastSeed {
			return false, nil
		}
		if err := adjustPhotos(d, []int{p.B}); err != nil {
			return false, err
		}
		d.filter(mostOff)
	}
	return points(d) >= leastSeed, nil
}

// points counts the points of the model.
func points(d *draft) (n int) {
	for i := range d.tracks {
		if d.tracks[i].ok {
			n++
		}
	}
	return n
}

// grow places photos until no more can be. What is placed and dropped in turn must not go on for ever: there are never
// more rounds than some for each photo.
func (d *draft) grow() error {
	whole, least, closed, again := 2, leastPoints, 0, false
	for range 20 + 8*len(d.in.Photos) {
		added := d.locate(least)
		if again && len(added) == 0 && whole == d.count {
			added = d.attach()
		}
		d.extend(added, mostOff)
		var err error
		switch {
		case float64(d.count) >= wholeGrowth*float64(whole):
			err = d.adjustWhole(growing)
			whole, least = d.count, leastPoints
		case len(added) > 0:
			err = adjustPhotos(d, added)
			d.filter(mostOff)
		case whole != d.count:
			err = d.adjustWhole(growing)
			whole, least = d.count, leastPoints
			clear(d.failed)
		case closed != d.count:
			err = closeLoops(d)
			closed, least = d.count, leastPoints
			clear(d.failed)
		case least > fewPoints:
			least = fewPoints
			clear(d.failed)
		case !again: // a small model may have contradicted photos that agree with the whole one
			again = true
			for i, n := range d.dropped {
				d.dropped[i] = min(n, mostDropped)
			}
		default:
			return nil
		}
		if err != nil {
			return err
		}
		report(d, false)
	}
	return nil
}

func report(d *draft, last bool) {
	if d.o.Progress != nil {
		d.o.Progress(d.count, len(d.in.Photos))
	}
	if d.o.Growing != nil {
		d.o.Growing(func() *Model { return d.model(mostShown) }, last)
	}
}

// shown lists the tracks with a point that a photo shows.
func (d *draft) shown(photo int) (list []place) {
	for _, p := range d.places[photo] {
		if d.tracks[p.track].ok {
			list = append(list, p)
		}
	}
	return list
}

// spread counts the points that a photo shows, at most 4 of each of its 64 parts: points in one corner locate it badly.
func spread(d *draft, photo int, list []place) (n int) {
	var parts [64]int
	for _, p := range list {
		parts[d.part(d.tracks[p.track].sights[p.sight].Sight, 8)]++
	}
	for _, c := range parts {
		n += min(4, c)
	}
	return n
}

// part returns in which part of its photo a keypoint is, of a grid of across by across.
func (d *draft) part(s Sight, across int) int {
	k, at := &d.lenses[d.in.Photos[s.Photo].Lens], d.in.Photos[s.Photo].Keypoints[s.Keypoint]
	x, y := int(float32(across)*at[0])/k.Width, int(float32(across)*at[1])/k.Height
	return across*min(across-1, max(0, y)) + min(across-1, max(0, x))
}

// locate places the photos that show the points of the model best, and returns them.
func (d *draft) locate(least int) (added []int) {
	type candidate struct{ photo, spread int }
	var list []candidate
	var shown [][]place
	best := 0
	for i := range d.in.Photos {
		if d.placed[i] || d.dropped[i] > mostDropped {
			continue
		}
		points := d.shown(i)
		if len(points) < least || len(points) <= d.failed[i]+d.failed[i]/10 {
			continue
		}
		c := candidate{i, spread(d, i, points)}
		list, shown = append(list, c), append(shown, points)
		best = max(best, c.spread)
	}
	found, ok := make([]twoview.Location, len(list)), make([]bool, len(list))
	parallel.For(len(list), func(i int) {
		if float64(list[i].spread) >= batchShare*float64(best) {
			found[i], ok[i] = locatePhoto(d, list[i].photo, shown[i], least)
		}
	})
	share := func(i int) float64 { return float64(len(found[i].Inliers)) / float64(len(shown[i])) }
	sure := 0.0
	for i := range list {
		if ok[i] {
			sure = max(sure, share(i))
		}
	}
	for i, c := range list {
		switch lens := d.in.Photos[c.photo].Lens; {
		case ok[i] && share(i) < sureShare*sure:
		case ok[i]:
			d.poses[c.photo], d.placed[c.photo] = found[i].Pose, true
			if !d.settled[lens] {
				d.settled[lens] = true
				d.lenses[lens].Calibration = found[i].Calibration
			}
			d.count++
			added = append(added, c.photo)
		case float64(c.spread) >= batchShare*float64(best):
			d.failed[c.photo] = len(shown[i])
		}
	}
	return added
}

// locatePhoto finds the pose of a photo that shows points, and its focal length if that is not known. ok is false if
// too few of them agree.
func locatePhoto(d *draft, photo int, list []place, least int) (l twoview.Location, ok bool) {
	pixels, points := make([][2]float32, len(list)), make([][3]float64, len(list))
	for i, p := range list {
		t := &d.tracks[p.track]
		pixels[i], points[i] = d.in.Photos[photo].Keypoints[t.sights[p.sight].Keypoint], t.x
	}
	lens := d.in.Photos[photo].Lens
	l, ok = twoview.Locate(d.lenses[lens].Calibration, d.settled[lens], pixels, points, twoview.Options{
		MinInliers: max(least, int(leastShare*float64(len(list)))), Key: d.key(photo, photo)})
	l.Pose.Lens = lens
	return l, ok
}
