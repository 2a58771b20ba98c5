package synth

import (
	"math"

	"vksplat/internal/geom"
)

// The procedural scene: z points up, the floor is z = 0, a dome closes it, so
// every ray hits a textured surface. Lengths are units of the capture.
const (
	synthDome    = 7.0  // radius of the dome around the origin
	synthAmbient = 0.52 // light that reaches every surface
	synthSun     = 0.58 // light of the sun at normal incidence
)

var sunDirection = geom.Vec{0.52, -0.38, 0.765}.Unit()

// ray starts at origin; direction has length 1.
type ray struct{ origin, direction geom.Vec }

func (r ray) at(t float64) geom.Vec { return r.origin.Add(r.direction.Mul(t)) }

// solid is a shape in its own frame, centred at the origin.
type solid interface {
	// hit returns the distance to the first surface in front of the origin of
	// the ray, +Inf for none, and the outward normal there.
	hit(r ray) (t float64, normal geom.Vec)
	// radius bounds the shape.
	radius() float64
}

// object is a solid placed in the scene, turned about the vertical by an angle
// and then tilted about the x axis.
type object struct {
	solid  solid
	center geom.Vec
	bound  float64     // radius of the bounding sphere
	axes   [3]geom.Vec // of the object's frame, in the scene
	look   texture
}

func place(s solid, center geom.Vec, turn, tilt float64, look texture) object {
	st, ct := math.Sincos(turn)
	sx, cx := math.Sincos(tilt)
	return object{solid: s, center: center, bound: s.radius(), look: look, axes: [3]geom.Vec{
		{ct, st, 0},
		{-st * cx, ct * cx, sx},
		{st * sx, -ct * sx, cx},
	}}
}

// local turns a direction of the scene into the object's frame.
func (o *object) local(v geom.Vec) geom.Vec {
	return geom.Vec{v.Dot(o.axes[0]), v.Dot(o.axes[1]), v.Dot(o.axes[2])}
}

func (o *object) world(v geom.Vec) geom.Vec {
	return o.axes[0].Mul(v[0]).Add(o.axes[1].Mul(v[1])).Add(o.axes[2].Mul(v[2]))
}

type surface struct {
	t      float64
	point  geom.Vec
	normal geom.Vec
	color  geom.Vec // without light
	sky    bool
	owner  int // index of the object, -1 for floor and dome
}

type synthWorld struct {
	objects    []object
	floor      texture
	sky        texture
	ground     float64 // radius of the floor around the origin
	dome       float64 // likewise of the dome; beyond the floor's edge
	shadowless bool    // nothing darkens what lies behind it
	squares    [][]int // of a city: the objects on each square, by row; nil: there are none
}

// trace returns the first surface along a ray that starts inside the dome.
func (w *synthWorld) trace(r ray) surface {
	best := surface{t: math.Inf(1), owner: -1}
	var at geom.Vec
	if w.squares == nil {
		for i := range w.objects {
			w.meet(i, r, &best, &at)
		}
	}
	w.eachSquare(r, func(ids []int) {
		for _, i := range ids {
			w.meet(i, r, &best, &at)
		}
	})
	if best.owner >= 0 {
		best.point = r.at(best.t)
		best.color = w.objects[best.owner].look(at)
		return best
	}
	return w.background(r)
}

// meet makes object i the first surface, met at the point at of its own frame, where it is nearer than the one before.
func (w *synthWorld) meet(i int, r ray, best *surface, at *geom.Vec) {
	o := &w.objects[i]
	// In numbers, because most rays end here: vectors take three times as long.
	x, y, z := o.center[0]-r.origin[0], o.center[1]-r.origin[1], o.center[2]-r.origin[2]
	along := x*r.direction[0] + y*r.direction[1] + z*r.direction[2]
	if x*x+y*y+z*z-along*along > o.bound*o.bound || along < -o.bound || along-o.bound > best.t {
		return
	}
	lr := ray{o.local(geom.Vec{-x, -y, -z}), o.local(r.direction)}
	if t, n := o.solid.hit(lr); t < best.t {
		best.t, best.normal, best.owner = t, o.world(n), i
		*at = lr.at(t)
	}
}

func (w *synthWorld) background(r ray) surface {
	if r.direction[2] < 0 {
		t := -r.origin[2] / r.direction[2]
		if p := r.at(t); p[0]*p[0]+p[1]*p[1] < w.ground*w.ground {
			return surface{t: t, point: p, normal: geom.Vec{0, 0, 1}, color: w.floor(p), owner: -1}
		}
	}
	b := r.origin.Dot(r.direction)
	t := -b + math.Sqrt(b*b-r.origin.Dot(r.origin)+w.dome*w.dome)
	p := r.at(t)
	return surface{t: t, point: p, normal: p.Mul(-1 / w.dome), color: w.sky(p), sky: true, owner: -1}
}

// shade returns the colour with light: Lambert, a soft shadow of every object's
// bounding sphere, and a darkening of the floor close to objects. Nothing
// depends on the direction of view.
func (w *synthWorld) shade(s *surface) geom.Vec {
	if s.sky {
		return s.color
	}
	sun := max(s.normal.Dot(sunDirection), 0)
	ambient := synthAmbient + 0.1*s.normal[2]
	if w.shadowless {
		return s.color.Mul(ambient + synthSun*sun)
	}
	for i := range w.objects {
		if i == s.owner {
			continue
		}
		o := &w.objects[i]
		r := 0.85 * o.bound
		x, y, z := o.center[0]-s.point[0], o.center[1]-s.point[1], o.center[2]-s.point[2]
		square, along := x*x+y*y+z*z, x*sunDirection[0]+y*sunDirection[1]+z*sunDirection[2]
		if off := square - along*along; along > 0 && off < 1.3*1.3*r*r {
			sun *= 0.2 + 0.8*smooth(0.6*r, 1.3*r, math.Sqrt(max(off, 0)))
		}
		if s.owner < 0 && square < 1.6*1.6*r*r {
			ambient *= 0.72 + 0.28*smooth(0.5*r, 1.6*r, math.Sqrt(square))
		}
	}
	return s.color.Mul(ambient + synthSun*sun)
}

func (w *synthWorld) color(r ray) geom.Vec {
	s := w.trace(r)
	return w.shade(&s)
}

func newSynthWorld() *synthWorld {
	white, ink := rgb(0xf2ead8), rgb(0x34495e)
	return &synthWorld{floor: floorTexture(), sky: skyTexture(), ground: synthDome, dome: synthDome, objects: []object{
		// The middle: a plinth with a ball in a ring.
		place(cylinder{0.95, 0.2}, geom.Vec{0, 0, 0.2}, 0, 0, segments(rgb(0x9c6b4e), rgb(0xd1a67d), 9, 0)),
		place(sphere{0.42}, geom.Vec{0, 0, 0.82}, 0, 0, marble(rgb(0x1f7a78), rgb(0x8fd3c1), 0.35)),
		place(torus{0.68, 0.11}, geom.Vec{0, 0, 0.86}, 0.6, 0.45, segments(rgb(0xe0672f), rgb(0xf7c46c), 8, 0)),
		// Around it.
		place(box{0.36, 0.36, 0.36}, geom.Vec{1.45, 0.35, 0.36}, 0.5, 0,
			boxChecker(rgb(0x2f5d9b), rgb(0xa9c7e8), 0.24)),
		place(box{0.2, 0.2, 0.2}, geom.Vec{1.42, 0.3, 0.92}, 1.1, 0,
			bands(rgb(0xc0392b), rgb(0xf3b5a5), geom.Vec{0, 0, 1}, 0.1)),
		place(sphere{0.38}, geom.Vec{0.35, -1.5, 0.38}, 0.3, 0.5, segments(rgb(0xb23a63), white, 6, 0)),
		place(cylinder{0.26, 0.55}, geom.Vec{-1.3, -0.9, 0.55}, 0, 0, segments(rgb(0xe9b44c), rgb(0x7b3f61), 3, 5)),
		place(torus{0.34, 0.14}, geom.Vec{-1.45, 0.65, 0.14}, 0, 0, segments(rgb(0x4f8a4b), rgb(0xbfdc8a), 5, 0)),
		place(sphere{0.2}, geom.Vec{-1.45, 0.65, 0.34}, 0, 0, marble(rgb(0xf2c14e), rgb(0xd9822b), 0.2)),
		place(box{0.5, 0.16, 0.3}, geom.Vec{0.1, 1.6, 0.3}, -0.35, 0,
			bands(ink, rgb(0x9fb4c7), geom.Vec{1, 0, 0}, 0.17)),
		place(sphere{0.17}, geom.Vec{-0.05, 1.62, 0.77}, 0, 0, marble(rgb(0x8e5ea2), rgb(0xd9b8e8), 0.18)),
		place(sphere{0.22}, geom.Vec{1.25, -1.05, 0.22}, 0.8, 0.4, checkerBall(rgb(0xf0e3c0), rgb(0x3b7d4f))),
	}}
}

// checkerBall is a ball of eight differently coloured octants with soft edges.
func checkerBall(a, b geom.Vec) texture {
	return func(p geom.Vec) geom.Vec {
		t := smooth(-0.03, 0.03, p[0])*2 - 1
		t *= smooth(-0.03, 0.03, p[1])*2 - 1
		t *= smooth(-0.03, 0.03, p[2])*2 - 1
		return mix(a, b, 0.5+0.5*t)
	}
}
