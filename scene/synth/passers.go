package synth

import (
	"math"

	"vksplat/internal/geom"
)

// Purposes of random numbers of passers-by: how many, and each one.
const (
	streamPassers uint32 = 0x10031
	streamPasser  uint32 = 0x10032 // and the next
)

// heldOut is the number of photos of which the first is held out as a rule.
const heldOut = 8

// HasPassers says whether somebody walks through photo i: with Options.Passers through every third of those that are
// trained on when every 8th is held out, which all stay empty.
func (s *Capture) HasPassers(i int) bool {
	return s.o.Passers && i < s.o.Images && i%heldOut != 0 && (i-i/heldOut-1)%3 == 1
}

// passed returns the world as photo i shows it.
func (s *Capture) passed(i int) *synthWorld {
	if !s.HasPassers(i) {
		return s.world
	}
	w := *s.world
	w.objects = append([]object(nil), w.objects...)
	for k := range 2 + int(2*s.o.random(streamPassers, i)[0]) {
		w.objects = append(w.objects, s.passer(i, k)...)
	}
	return &w
}

// passer is somebody who walks between the camera of photo i and the things on the table, or beside them: in this photo
// alone at this place, in clothes of any colour.
func (s *Capture) passer(i, k int) []object {
	r, c := s.o.random(streamPasser, 8*i+k), s.o.random(streamPasser+1, 8*i+k)
	eye := geom.Vec(s.views[i].Center())
	out := geom.Vec{eye[0], eye[1], 0}
	side := geom.Vec{-out[1], out[0], 0}.Unit()
	at := out.Mul(0.28 + 0.3*r[0]).Add(side.Mul(2.2 * (r[1] - 0.5)))
	height, width := 0.55+0.25*r[2], 0.22+0.1*r[3]
	coat, stripe := geom.Vec{c[0], c[1], c[2]}, geom.Vec{c[1], c[2], c[0]}.Mul(0.7)
	return []object{
		place(cylinder{width, height}, at.Add(geom.Vec{0, 0, height}), 2*math.Pi*c[3], 0,
			bands(coat, stripe, geom.Vec{0, 0, 1}, 0.3+0.5*c[3])),
		place(sphere{0.8 * width}, at.Add(geom.Vec{0, 0, 2*height + 0.7*width}), 0, 0,
			marble(rgb(0xd9a98a), rgb(0x5b3a29), 0.25)),
	}
}
