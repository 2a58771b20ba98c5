package reconstruct

import (
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
	"vksplat/internal/philox"
	"vksplat/scene/adjust"
	"vksplat/scene/calibrate"
	"vksplat/scene/mapping"
	"vksplat/scene/photo"
)

const (
	// Photos at a median distance below leastReach metres from each other's middle are not told apart by GPS.
	leastReach = 30
	// A model is aligned by leastLocated photos at least, whose second axis is leastWide times as long as GPS is off,
	// and which tell the model's turn to mostTilt radians.
	leastLocated, leastWide, mostTilt = 5, 2, 0.05
	alignSamples                      = 500
	// outlier is how many standard deviations a place is off that does not count (Rousseeuw, Leroy: Robust Regression
	// and Outlier Detection, 1987); leastSigma is the smallest, in metres.
	outlier, leastSigma = 2.5, 0.01
)

// Earth says where a model is: x is east, y north and z up of an origin, in metres.
type Earth struct {
	Latitude  float64 `json:"latitude"` // of the origin, degrees to the north, WGS 84
	Longitude float64 `json:"longitude"`
	Altitude  float64 `json:"altitude"` // metres, as the photos have it
	Photos    int     `json:"photos"`   // that agree
	Off       float64 `json:"off"`      // metres by which their GPS is off the model, root of the mean square
}

// places are those of photos by GPS: metres to the east, to the north and up of an origin.
type places struct {
	origin  photo.Position // the median of each number
	at      [][3]float64
	located []bool // on the map
	high    []bool // and with a height
	apart   bool   // GPS tells them apart
}

func placesOf(photos []Photo) *places {
	n := len(photos)
	positions := make([]photo.Position, n)
	p := &places{at: make([][3]float64, n), located: make([]bool, n), high: make([]bool, n)}
	parallel.For(n, func(i int) {
		positions[i], p.located[i] = photo.TakenAt(photos[i].Path)
		p.high[i] = p.located[i] && !math.IsNaN(positions[i].Altitude)
	})
	median := func(counts []bool, number func(photo.Position) float64) (m float64) {
		var list []float64
		for i, yes := range counts {
			if yes {
				list = append(list, number(positions[i]))
			}
		}
		if slices.Sort(list); len(list) > 0 {
			m = list[len(list)/2]
		}
		return m
	}
	p.origin = photo.Position{
		Latitude:  median(p.located, func(p photo.Position) float64 { return p.Latitude }),
		Longitude: median(p.located, func(p photo.Position) float64 { return p.Longitude }),
		Altitude:  median(p.high, func(p photo.Position) float64 { return p.Altitude })}
	zero, axes := onEarth(p.origin)
	for i, at := range positions {
		if !p.high[i] {
			at.Altitude = p.origin.Altitude
		}
		x, _ := onEarth(at)
		p.at[i] = geom.Rotate(axes, geom.Sub(x, zero))
	}
	var reach []float64
	for i, yes := range p.located {
		if yes {
			reach = append(reach, math.Hypot(p.at[i][0], p.at[i][1]))
		}
	}
	p.apart = len(reach) > 0 && geom.Quantile(reach, 0.5) >= leastReach
	return p
}

// onEarth returns a place in metres from the middle of the earth (WGS 84), and the directions east, north and up there.
func onEarth(p photo.Position) (x [3]float64, axes [9]float64) {
	const equator, flat = 6378137, 6.69437999014e-3 // metres; square of the eccentricity
	s, c := math.Sincos(p.Latitude * math.Pi / 180)
	sl, cl := math.Sincos(p.Longitude * math.Pi / 180)
	n := equator / math.Sqrt(1-flat*s*s)
	return [3]float64{(n + p.Altitude) * c * cl, (n + p.Altitude) * c * sl, (n*(1-flat) + p.Altitude) * s},
		[9]float64{-sl, cl, 0, -s * cl, -s * sl, c, c * cl, c * sl, s}
}

// fit is places of cameras and those by GPS, and the similarity that brings the former to the latter.
type fit struct {
	from, to [][3]float64
	scale    float64
	r        [9]float64
	t        [3]float64
}

func (f *fit) apply(x [3]float64) [3]float64 {
	return geom.Add(geom.Scale(geom.Rotate(f.r, x), f.scale), f.t)
}

// solve fits the similarity to some of the places, and returns how far all are off.
func (f *fit) solve(some []int) (off []float64, ok bool) {
	var from, to [][3]float64
	for _, i := range some {
		from, to = append(from, f.from[i]), append(to, f.to[i])
	}
	var err error
	if f.scale, f.r, f.t, err = calibrate.Align(from, to); err != nil || !(f.scale > 0) {
		return nil, false
	}
	for i := range f.from {
		off = append(off, geom.Length(geom.Sub(f.apply(f.from[i]), f.to[i])))
	}
	return off, geom.Finite(off...)
}

// align moves a model to where GPS has its photos: by least median of squares, then by least squares without outliers.
// It returns nil, and moves nothing, where GPS tells too little.
func align(m *mapping.Model, p *places) *Earth {
	f := &fit{}
	for i, pose := range m.Poses {
		if m.Placed[i] && p.high[i] {
			f.from, f.to = append(f.from, geom.TranslationOf(geom.Transposed(pose.R), pose.T)), append(f.to, p.at[i])
		}
	}
	n := len(f.from)
	if n < leastLocated {
		return nil
	}
	least, sigma := math.Inf(1), 0.0
	var agree []int
	for k := range alignSamples {
		off, ok := f.solve(philox.ViewOrder(0, k, n)[:3])
		if !ok {
			continue
		}
		sorted := slices.Sorted(slices.Values(off))
		if middle := sorted[(n+4)/2-1]; middle < least {
			least, sigma = middle, max(leastSigma, 1.4826*(1+5/float64(n-3))*middle)
			agree = within(off, outlier*sigma)
		}
	}
	for range 3 {
		off, ok := f.solve(agree)
		if !ok {
			return nil
		}
		agree = within(off, outlier*sigma)
	}
	e := &Earth{Latitude: p.origin.Latitude, Longitude: p.origin.Longitude, Altitude: p.origin.Altitude}
	if e.Photos, e.Off = len(agree), f.off(agree); !f.sure(agree, e.Off) {
		return nil
	}
	for i := range m.Poses {
		if m.Placed[i] {
			m.Poses[i] = f.moved(m.Poses[i])
		}
	}
	for i := range m.Points {
		m.Points[i].X = f.apply(m.Points[i].X)
	}
	return e
}

func within(off []float64, most float64) (list []int) {
	for i, x := range off {
		if x <= most {
			list = append(list, i)
		}
	}
	return list
}

// off returns by how much some places are off.
func (f *fit) off(some []int) float64 {
	sum := 0.0
	for _, i := range some {
		d := geom.Sub(f.apply(f.from[i]), f.to[i])
		sum += geom.Dot(d, d)
	}
	return math.Sqrt(sum / float64(len(some)))
}

// sure reports whether some places spread far enough in two directions for GPS that is off so much.
func (f *fit) sure(some []int, off float64) bool {
	n := float64(len(some))
	var mean [3]float64
	for _, i := range some {
		mean = geom.Add(mean, geom.Scale(f.to[i], 1/n))
	}
	var spread [3][3]float64
	for _, i := range some {
		d := geom.Sub(f.to[i], mean)
		for k := range 9 {
			spread[k/3][k%3] += d[k/3] * d[k%3] / n
		}
	}
	values, _ := geom.SymmetricEigen(spread)
	slices.Sort(values[:])
	wide := math.Sqrt(max(0, values[1]))
	return len(some) >= leastLocated && wide >= leastWide*off && wide*math.Sqrt(n)*mostTilt >= off && wide > leastSigma
}

// moved returns a camera's pose in the new frame.
func (f *fit) moved(p adjust.Pose) adjust.Pose {
	centre := f.apply(geom.TranslationOf(geom.Transposed(p.R), p.T))
	p.R = geom.Product(p.R, geom.Transposed(f.r))
	p.T = geom.TranslationOf(p.R, centre)
	return p
}
