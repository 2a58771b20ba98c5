package mapping

import (
	"fmt"
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
	"vksplat/internal/philox"
	"vksplat/scene"
	"vksplat/scene/twoview"
)

// draws is a stream of random numbers.
type draws struct{ at, seed uint32 }

func (d *draws) uniform() float64 {
	d.at++
	return philox.Uniform(philox.Block([4]uint32{d.at}, philox.Key(uint64(d.seed)))[0])
}

func (d *draws) normal() float64 {
	r, sin, _ := philox.NormalPair(1-d.uniform(), d.uniform())
	return r * sin
}

// truth is a made-up capture: cameras, points with the directions that they face, and how it is photographed.
type truth struct {
	lens    scene.Calibration
	cameras []scene.Camera
	points  [][3]float64
	normals [][3]float64 // nil: points are seen from everywhere
	far     float64      // how far they are seen
	noise   float64      // pixels
	wrong   float64      // share of wrong matches
	known   bool         // the focal length is
	chosen  bool         // the lens's model is
	off     float64      // factor of a focal length that is not known
	zooms   []float64    // of each photo, which then has a lens of its own
	twins   [][2]int     // photos that are matched as if point 2i were point 2i+1
	around  int          // the first photos, that are panoramas
	rig     int          // cameras that are fixed to each other, each with its own lens; 0: there is no rig
	draws   *draws
}

func newTruth() *truth {
	return &truth{far: math.Inf(1), noise: 0.5, wrong: 0.2, off: 1.2, draws: &draws{seed: 5},
		lens: scene.Calibration{Model: scene.LensRadial, Width: 1000, Height: 750,
			Params: []float64{850, 500, 375, -0.05, 0}}}
}

// look adds a camera, slightly off where it should be.
func (s *truth) look(eye, target geom.Vec) {
	var c scene.Camera
	for i := range 3 {
		target[i] += 0.03 * geom.Length(geom.Sub(eye, target)) * s.draws.normal()
	}
	scene.LookAt(&c, eye, target)
	s.cameras = append(s.cameras, c)
}

// arc is n photos along a part of a circle before a wall with relief.
func arc(n int, part float64) *truth {
	s := newTruth()
	for i := range n {
		sin, cos := math.Sincos(part * (float64(i)/float64(n-1) - 0.5))
		s.look(geom.Vec{6 * sin, -6 * cos, 0.4 * s.draws.normal()}, geom.Vec{})
	}
	for range 1500 {
		s.points = append(s.points, [3]float64{8 * (s.draws.uniform() - 0.5), 2 * s.draws.uniform(),
			5 * (s.draws.uniform() - 0.5)})
	}
	return s
}

// around is n photos around an object whose points face outwards.
func around(n, points int) *truth {
	s := newTruth()
	for i := range n {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		s.look(geom.Vec{5 * cos, 5 * sin, 1 + 0.5*math.Sin(float64(3*i))}, geom.Vec{})
	}
	for range points {
		x := geom.Vec{s.draws.normal(), s.draws.normal(), s.draws.normal()}.Unit()
		s.normals = append(s.normals, x)
		s.points = append(s.points, x.Mul(1.3+0.4*s.draws.uniform()))
	}
	return s
}

// twins is n photos around an object with two like sides, some of which are matched with the wrong side.
func twins(n, points int) *truth {
	s := around(n, points)
	s.points, s.normals = s.points[:points/2], s.normals[:points/2]
	for i := range points / 2 {
		for _, list := range []*[][3]float64{&s.points, &s.normals} {
			x := (*list)[2*i]
			*list = slices.Insert(*list, 2*i+1, [3]float64{-x[0], -x[1], x[2]})
		}
	}
	for i := 0; i < n/2; i += 2 {
		s.twins = append(s.twins, [2]int{i, i + n/2})
	}
	return s
}

// block is n photos forwards around a block of houses, of a wall on the other side of the street, which end where they
// begin.
func block(n int) *truth {
	s := newTruth()
	s.far = 14
	at := func(i float64) geom.Vec {
		sin, cos := math.Sincos(2 * math.Pi * i / float64(n))
		return geom.Vec{20 * cos, 14 * sin, 1.6}
	}
	for i := range n {
		eye := at(float64(i)).Add(geom.Vec{0.1 * s.draws.normal(), 0.1 * s.draws.normal(), 0.1 * s.draws.normal()})
		s.look(eye, at(float64(i)+float64(n)/12).Mul(1.2))
	}
	for range 300 * n {
		sin, cos := math.Sincos(2 * math.Pi * s.draws.uniform())
		out := 5 + 2*s.draws.uniform()
		s.points = append(s.points, [3]float64{(20 + out) * cos, (14 + out) * sin, 5 * s.draws.uniform()})
	}
	return s
}

// street is n photos forwards along a street between houses.
func street(n int) *truth {
	s := newTruth()
	s.far = 25
	for i := range n {
		y := 1.2 * float64(i)
		s.look(geom.Vec{0.1 * s.draws.normal(), y, 1.6 + 0.05*s.draws.normal()}, geom.Vec{0, y + 10, 1.6})
	}
	for range 150 * n {
		side := math.Copysign(4+2*s.draws.uniform(), s.draws.uniform()-0.5)
		s.points = append(s.points, [3]float64{side, (1.2*float64(n) + 25) * s.draws.uniform(), 7 * s.draws.uniform()})
	}
	return s
}

// room is n photos across a room of 9 by 7 by 3 metres, from places around its middle: they show something everywhere.
func room(n, points int) *truth {
	s := newTruth()
	for i := range n {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		s.look(geom.Vec{2.5 * cos, 2 * sin, 1.5 + 0.4*math.Sin(float64(3*i))}, geom.Vec{-cos, -sin, 1.4})
	}
	for range points {
		x := [3]float64{9 * (s.draws.uniform() - 0.5), 7 * (s.draws.uniform() - 0.5), 3 * s.draws.uniform()}
		wall := int(3 * s.draws.uniform())
		x[wall] = [3]float64{4.5, 3.5, 1.5}[wall]*math.Copysign(1, s.draws.uniform()-0.5) + float64(wall/2)*1.5
		s.points = append(s.points, x)
	}
	return s
}

// aerial is a grid of photos downwards.
func aerial(rows, columns int, relief float64) *truth {
	s := newTruth()
	for i := range rows {
		for k := range columns {
			x, y := 12*float64(k), 16*float64(i)
			eye := geom.Vec{x + s.draws.normal(), y + s.draws.normal(), 60 + 1.5*s.draws.normal()}
			s.look(eye, geom.Vec{x, y + 4, 0})
		}
	}
	for range 150 * rows * columns {
		s.points = append(s.points, [3]float64{(12*float64(columns)+60)*s.draws.uniform() - 30,
			(16*float64(rows)+50)*s.draws.uniform() - 25, relief * s.draws.uniform()})
	}
	return s
}

// with adds the photos and points of another capture, moved away.
func (s *truth) with(o *truth, away [3]float64) *truth {
	for _, c := range o.cameras {
		c.T = geom.Sub(c.T, geom.Rotate(c.R, away))
		s.cameras = append(s.cameras, c)
	}
	for _, x := range o.points {
		s.points = append(s.points, geom.Add(x, away))
	}
	s.normals = append(s.normals, o.normals...)
	return s
}

// hall is n panoramas on a way through a room, which are held aslant, and photos of a pinhole in between.
func hall(n, photos int) *truth {
	s := newTruth()
	s.around = n
	for i := range n + photos {
		sin, cos := math.Sincos(5 * float64(i) / float64(n+photos))
		to := geom.Vec{s.draws.normal(), s.draws.normal(), 0.6 * s.draws.normal()}
		if i >= n {
			sin, cos = sin+0.2, cos+0.1
			to = geom.Vec{s.draws.normal(), 4, 0.3 * s.draws.normal()}
		}
		eye := geom.Vec{1.5 * cos, 1.2 * sin, 0.2 * float64(i%3)}
		s.look(eye, eye.Add(to))
	}
	for range 1500 {
		x := geom.Vec{s.draws.normal(), s.draws.normal(), s.draws.normal()}.Unit()
		s.points = append(s.points, x.Mul(3+2*s.draws.uniform()))
	}
	return s
}

// ride is a way through a room of a rig of cameras, which look to different sides and hardly overlap.
func ride(moments, cameras int) *truth {
	s := hall(0, moments)
	s.rig = cameras
	bodies := make([]scene.Camera, moments)
	for i := range bodies {
		sin, cos := math.Sincos(3 * float64(i) / float64(moments))
		eye := geom.Vec{1.5 * cos, 1.2 * sin, 0.2 * float64(i%3)}
		scene.LookAt(&bodies[i], eye, eye.Add(geom.Vec{cos + 0.2*s.draws.normal(), sin, 0.2 * s.draws.normal()}))
	}
	s.cameras = nil
	for range 3500 {
		x := geom.Vec{s.draws.normal(), s.draws.normal(), s.draws.normal()}.Unit()
		s.points = append(s.points, x.Mul(3+2*s.draws.uniform()))
	}
	for _, body := range bodies {
		for k := range cameras {
			c := body.Turned(geom.RotationFromVector([3]float64{0.1 * float64(k%2), 0.9 * float64(k), 0}))
			c.T = geom.Add(c.T, [3]float64{0.1, 0.05 * float64(k), 0.15})
			s.cameras = append(s.cameras, c)
		}
	}
	return s
}

// input photographs the scene and matches all pairs of photos that share points.
func (s *truth) input() *Input { return s.inputAs(s.lens.Model) }

// inputAs is input with a guess of a model without distortion.
func (s *truth) inputAs(model scene.LensModel) *Input {
	f := s.lens.Params[0]
	if !s.known || s.chosen {
		f *= s.off
	}
	guess := as(s.lens, scene.LensSimplePinhole)
	guess.Params[0] = f
	guess = as(guess, model)
	sphere := scene.Calibration{Model: scene.LensEquirectangular, Width: 2000, Height: 1000,
		Params: []float64{2000, 1000}}
	in := &Input{Lenses: []Lens{{Calibration: guess, FocalKnown: s.known, Chosen: s.chosen}}}
	if s.around > 0 {
		in.Lenses = append(in.Lenses, Lens{Calibration: sphere, FocalKnown: true})
	}
	for range s.rig - 1 {
		in.Lenses = append(in.Lenses, in.Lenses[0])
	}
	seen := make([]map[int]int32, len(s.cameras)) // keypoints by point
	for i, c := range s.cameras {
		p, lens := Photo{Name: fmt.Sprintf("%03d.jpg", i)}, as(s.lens, s.lens.Model)
		switch {
		case i < s.around:
			p.Lens, lens = 1, sphere
		case s.zooms != nil:
			p.Lens = i
			in.Lenses = append(in.Lenses, in.Lenses[0])[:i+1]
			lens.Params[0] = s.zooms[i] * s.lens.Params[0]
		case s.rig > 0:
			p.Moment, p.Lens = 1+i/s.rig, i%s.rig
		}
		optics, _ := lens.Optics(lens.Width, lens.Height)
		seen[i] = map[int]int32{}
		for k, x := range s.points {
			u, v, ok := optics.Project(c.ToCamera(x))
			away := geom.Sub(c.Center(), x)
			if !ok || u < 0 || v < 0 || u > float64(lens.Width) || v > float64(lens.Height) ||
				geom.Length(away) > s.far || s.normals != nil && geom.Dot(away, s.normals[k]) < 0.4*geom.Length(away) ||
				s.draws.uniform() > 0.75 {
				continue
			}
			seen[i][k] = int32(len(p.Keypoints))
			stretch := 1.0
			if p.Lens == 1 { // the pixels near the poles are wide
				stretch = 1 / math.Sin(math.Pi*v/float64(lens.Height))
			}
			p.Keypoints = append(p.Keypoints, [2]float32{float32(u + s.noise*stretch*s.draws.normal()),
				float32(v + s.noise*s.draws.normal())})
		}
		in.Photos = append(in.Photos, p)
	}
	var list []Pair
	for b := range s.cameras {
		for a := range b {
			p := Pair{A: a, B: b}
			twin := 0
			if slices.Contains(s.twins, [2]int{a, b}) {
				twin = 1
			}
			for k := range s.points {
				i, yes := seen[a][k]
				j, too := seen[b][k^twin]
				if !yes || !too || s.draws.uniform() > 0.8 {
					continue
				}
				if s.draws.uniform() < s.wrong {
					j = int32(s.draws.uniform() * float64(len(in.Photos[b].Keypoints)))
				}
				p.Matches = append(p.Matches, [2]int32{i, j})
			}
			if len(p.Matches) >= 20 {
				list = append(list, p)
			}
		}
	}
	parallel.For(len(list), func(i int) {
		p := &list[i]
		p.Relation = twoview.Relate(in.view(p.A), in.view(p.B), p.Matches, twoview.Options{Key: uint64(i)})
	})
	for _, p := range list {
		if p.Relation.Kind != twoview.Unrelated {
			in.Pairs = append(in.Pairs, p)
		}
	}
	return in
}

func (in *Input) view(photo int) twoview.View {
	p := &in.Photos[photo]
	l := &in.Lenses[p.Lens]
	o, _ := l.Optics(l.Width, l.Height)
	info, _ := l.Model.Info()
	return twoview.View{Optics: o, FocalKnown: l.FocalKnown || info.Fish, Points: p.Keypoints}
}
