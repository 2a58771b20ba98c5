package reconstruct

import (
	"context"
	"math"

	"vksplat/pipeline"
	"vksplat/pipeline/features"
	"vksplat/pipeline/matching"
	"vksplat/scene/calibrate"
)

const (
	// againSide is the longer side at which photos are matched that have cameras already, pixels.
	againSide = 1000
	// againBytes is how much the pictures take that are processed at once.
	againBytes = 512 << 20
	// sameFeature is how far a feature may be from where another program observed a point, pixels of features.
	sameFeature = 1.5
)

// Again is a calibrate.Match: it finds features of all photos, which photoOf describes by their names, matches those
// that stand apart with the others, and has the points where the others show them at the features that match.
func Again(ctx context.Context, d *pipeline.Device, apart, others []calibrate.Photo, photoOf func(name string) Photo) (
	[][]calibrate.Sight, error) {
	all := append(append([]calibrate.Photo{}, apart...), others...)
	photos := make([]Photo, len(all))
	for i := range all {
		photos[i] = photoOf(all[i].Name)
	}
	o := features.Default()
	o.Side = againSide
	var found []Features
	err := Find(ctx, d, photos, o, againBytes, func(f *Features) error {
		found = append(found, *f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	list, shows := make([]matching.Photo, len(all)), make([][]int32, len(all))
	for i := range all {
		list[i] = matching.Photo{Descriptors: found[i].Descriptors}
		shows[i] = pointsAt(&found[i], &all[i])
	}
	m, err := pipeline.NewMatcher(d, list, matching.Options{})
	if err != nil {
		return nil, err
	}
	defer m.Close() // what it found is with the host
	var pairs [][2]int
	for a := range apart {
		for b := len(apart); b < len(all); b++ {
			pairs = append(pairs, [2]int{a, b})
		}
	}
	votes := make([]map[[2]int32]int, len(apart)) // for a feature's being a point
	for a := range votes {
		votes[a] = map[[2]int32]int{}
	}
	err = m.Match(ctx, pairs, nil, func(pair int, matches [][2]int32) error {
		a, b := pairs[pair][0], pairs[pair][1]
		for _, match := range matches {
			if point := shows[b][match[1]]; point >= 0 {
				votes[a][[2]int32{match[0], point}]++
			}
		}
		return nil
	})
	sights := make([][]calibrate.Sight, len(apart))
	for a := range apart {
		sights[a] = elected(&found[a], &apart[a], votes[a])
	}
	return sights, err
}

// scaleOf is what makes features' pixels those of a photo's calibration; ok is false if the two are of other shapes.
func scaleOf(f *Features, p *calibrate.Photo) (scale float64, ok bool) {
	x, y := float64(p.Width)/float64(f.Width), float64(p.Height)/float64(f.Height)
	return x, math.Abs(x-y) < 0.01*x
}

// pointsAt returns for each feature the point that the photo shows there, nearest first, or -1.
func pointsAt(f *Features, p *calibrate.Photo) []int32 {
	points, off := make([]int32, len(f.Points)), make([]float64, len(f.Points))
	for i := range points {
		points[i], off[i] = -1, sameFeature
	}
	scale, ok := scaleOf(f, p)
	if !ok {
		return points
	}
	cell := func(x, y float64) [2]int { return [2]int{int(x / sameFeature), int(y / sameFeature)} }
	at := map[[2]int][]int{}
	for i, x := range f.Points {
		c := cell(float64(x.X), float64(x.Y))
		at[c] = append(at[c], i)
	}
	for _, s := range p.Sights {
		x, y := s.X/scale, s.Y/scale
		c := cell(x, y)
		for k := range 9 {
			for _, i := range at[[2]int{c[0] + k%3 - 1, c[1] + k/3 - 1}] {
				if d := math.Hypot(float64(f.Points[i].X)-x, float64(f.Points[i].Y)-y); d < off[i] {
					points[i], off[i] = s.Point, d
				}
			}
		}
	}
	return points
}

// elected returns the sights of a photo: of each feature the point with most votes, of each point one feature.
func elected(f *Features, p *calibrate.Photo, votes map[[2]int32]int) (sights []calibrate.Sight) {
	scale, ok := scaleOf(f, p)
	if !ok {
		return nil
	}
	used := map[int32]bool{}
	best := make([][2]int, len(f.Points)) // votes, point
	for vote, n := range votes {
		i, point := vote[0], int(vote[1])
		if n > best[i][0] || n == best[i][0] && point < best[i][1] {
			best[i] = [2]int{n, point}
		}
	}
	for i, x := range f.Points {
		if b := best[i]; b[0] > 0 && !used[int32(b[1])] {
			used[int32(b[1])] = true
			sights = append(sights, calibrate.Sight{X: float64(x.X) * scale, Y: float64(x.Y) * scale,
				Point: int32(b[1])})
		}
	}
	return sights
}
