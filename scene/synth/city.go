package synth

import (
	"fmt"
	"math"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// The city: squares of buildings and parks between streets, on the ground z = 0, in scene units.
const (
	cityPitch  = 2.0 // from the middle of a street to that of the next
	cityStreet = 0.5 // width of a street
	cityHeight = 3.4 // of the flight over the ground
	cityTop    = 3.1 // above all houses, below all cameras
	cityDome   = 6.0 // radius of the dome, times half the city's side: fields around the city, and the sky
	citySquare = 0.5 * (cityPitch - cityStreet)
	mostCity   = 8 // squares along a side
)

// Purposes of random numbers of the city.
const (
	streamCitySquare uint32 = 0x10021
	streamCityHouse  uint32 = 0x10022
	streamCityFlight uint32 = 0x10023
)

// citySide is how many squares a side of the city has: more photos fly over a larger one, and see each place more
// often.
func (o *Options) citySide() int {
	return min(mostCity, max(3, int(math.Round(0.6*math.Sqrt(float64(o.Images))))))
}

// newCityWorld builds the city. Light comes without shadows: those of bounding spheres, which the table has, would be
// no houses'.
func (o *Options) newCityWorld() *synthWorld {
	side := o.citySide()
	half := 0.5 * cityPitch * float64(side)
	w := &synthWorld{floor: cityFloor(half), sky: skyTexture(), ground: cityDome * half, dome: cityDome * half,
		shadowless: true}
	for id := range side * side {
		middle := geom.Vec{cityPitch*(float64(id%side)+0.5) - half, cityPitch*(float64(id/side)+0.5) - half, 0}
		var ids []int
		for _, object := range o.square(id, middle) {
			ids = append(ids, len(w.objects))
			w.objects = append(w.objects, object)
		}
		w.squares = append(w.squares, ids)
	}
	return w
}

// eachSquare calls f with the objects on the squares of a city that a ray, which starts above all of them, may pass.
func (w *synthWorld) eachSquare(r ray, f func(ids []int)) {
	if w.squares == nil || r.direction[2] >= 0 {
		return
	}
	side := int(math.Sqrt(float64(len(w.squares))))
	enter, leave := r.at((cityTop-r.origin[2])/r.direction[2]), r.at(-r.origin[2]/r.direction[2])
	var lo, hi [2]int
	for k := range lo {
		at := func(x float64) int {
			return int(min(max(math.Floor(x/cityPitch+0.5*float64(side)), -1), float64(side)))
		}
		lo[k], hi[k] = max(0, min(at(enter[k]), at(leave[k]))), min(side-1, max(at(enter[k]), at(leave[k])))
	}
	for y := lo[1]; y <= hi[1]; y++ {
		for x := lo[0]; x <= hi[0]; x++ {
			f(w.squares[side*y+x])
		}
	}
}

// square fills a square: every fifth or so is a park, others have one to four houses.
func (o *Options) square(id int, middle geom.Vec) (list []object) {
	r := o.random(streamCitySquare, id)
	if r[0] < 0.2 {
		for k := range 6 {
			list = append(list, o.tree(8*id+k, middle, citySquare*0.8)...)
		}
		return list
	}
	lots := [][4]float64{{0, 0, 0.62, 0.62}} // x, y, half sides
	switch {
	case r[0] < 0.45:
		lots = [][4]float64{{-0.36, 0, 0.28, 0.6}, {0.36, 0, 0.28, 0.6}}
	case r[0] < 0.85:
		lots = [][4]float64{{-0.36, -0.36, 0.28, 0.28}, {0.36, -0.36, 0.26, 0.3}, {-0.36, 0.36, 0.3, 0.26},
			{0.36, 0.36, 0.28, 0.28}}
	}
	for k, lot := range lots {
		q := o.random(streamCityHouse, 4*id+k)
		height := 0.2 + 0.75*q[0]*q[0]
		if k == 0 && r[1] < 0.15 {
			height += 0.4 // a tower
		}
		body := box{lot[2] * (0.8 + 0.2*q[1]), lot[3] * (0.8 + 0.2*q[2]), height}
		wall, glass := cityWalls[int(q[3]*float64(len(cityWalls)))], cityGlass[int(q[1]*float64(len(cityGlass)))]
		at := middle.Add(geom.Vec{lot[0], lot[1], height})
		list = append(list, place(body, at, 0, 0, facade(body, wall, glass, rgb(0x8a8580).Mul(0.6+0.6*q[2]))))
	}
	return append(list, o.tree(8*id+7, middle.Add(geom.Vec{0.66, 0.66, 0}), 0.05)...)
}

// tree is a trunk with a crown, within spread of a point.
func (o *Options) tree(id int, middle geom.Vec, spread float64) []object {
	r := o.random(streamCityHouse, 1<<16+id)
	at := middle.Add(geom.Vec{spread * (2*r[0] - 1), spread * (2*r[1] - 1), 0})
	size := 0.1 + 0.1*r[2]
	leaf := mix(rgb(0x3f6b35), rgb(0x7f9a4a), r[3])
	return []object{
		place(cylinder{0.03, size}, at.Add(geom.Vec{0, 0, size}), 0, 0, segments(rgb(0x5b4332), rgb(0x7a5c43), 3, 0)),
		place(sphere{size}, at.Add(geom.Vec{0, 0, 2.4 * size}), 0, 0, marble(leaf, leaf.Mul(0.6), 0.6*size)),
	}
}

var (
	cityWalls = []geom.Vec{rgb(0xc9b79c), rgb(0xa65f46), rgb(0xd9d4c7), rgb(0x8f9aa3), rgb(0xd8c08a), rgb(0xb7a1a0)}
	cityGlass = []geom.Vec{rgb(0x2e4257), rgb(0x49606b), rgb(0x5b4a3a)}
)

// facade has windows on the four sides of a box and a roof with tar and gravel.
func facade(body box, wall, glass, roof geom.Vec) texture {
	const storey, bay = 0.2, 0.18
	return func(p geom.Vec) geom.Vec {
		if p[2] > body[2]-1e-6 {
			edge := max(math.Abs(p[0])/body[0], math.Abs(p[1])/body[1])
			return mix(roof.Mul(0.75+0.5*noise(p.Mul(6))), wall.Mul(0.8), smooth(0.86, 0.9, edge))
		}
		along := p[0]
		if math.Abs(p[0]) > body[0]-1e-6 {
			along = p[1]
		}
		open := (0.5 + 0.5*wave(2*along/bay, 3)) * (0.5 + 0.5*wave(2*(p[2]+body[2])/storey-0.5, 3))
		return mix(wall.Mul(0.85+0.3*noise(p.Mul(3))), glass, open)
	}
}

// cityFloor has streets with a dashed line, pavements around the squares, and fields outside.
func cityFloor(half float64) texture {
	asphalt, line, pavement, grass := rgb(0x4d4f52), rgb(0xd8d3bd), rgb(0xa9a49a), rgb(0x6f8a4c)
	field := marble(rgb(0x97a35c), rgb(0xc7b877), 1.6)
	return func(p geom.Vec) geom.Vec {
		var off [2]float64 // distances from the middles of the nearest streets
		for k := range off {
			x := (p[k] + half) / cityPitch
			off[k] = math.Abs(x-math.Round(x)) * cityPitch
		}
		near, far := min(off[0], off[1]), max(off[0], off[1])
		along := p[0]
		if off[0] < off[1] {
			along = p[1]
		}
		street := mix(line, asphalt.Mul(0.85+0.3*noise(p.Mul(4))),
			max(smooth(0.02, 0.035, near), 0.5+0.5*wave(8*along, 4), smooth(0.3, 0.25, far)))
		inner := mix(pavement.Mul(0.9+0.2*wave(p[0]*10, 2)*wave(p[1]*10, 2)), marble(grass, grass.Mul(0.7), 0.4)(p),
			smooth(0.36, 0.4, near))
		town := mix(street, inner, smooth(cityStreet/2-0.01, cityStreet/2+0.01, near))
		beyond := max(math.Abs(p[0]), math.Abs(p[1])) - half
		return mix(town, field(p).Mul(0.85+0.3*noise(p.Mul(0.7))), smooth(0.25, 0.29, beyond))
	}
}

// cityViews fly over the city in rows, to and fro, each photo straight down or at a slant in one of four directions, in
// turn.
func (o *Options) cityViews() []scene.Camera {
	views := make([]scene.Camera, o.Images)
	half := 0.5 * cityPitch * float64(o.citySide())
	rows := max(1, int(math.Round(math.Sqrt(float64(o.Images)))))
	focal := 0.87 * float64(o.Width)
	for i := range views {
		r := o.random(streamCityFlight, i)
		row := i * rows / o.Images
		first, last := (row*o.Images+rows-1)/rows, ((row+1)*o.Images+rows-1)/rows
		along := (float64(i-first) + 0.5) / float64(last-first)
		if row%2 == 1 {
			along = 1 - along
		}
		eye := geom.Vec{half * (2*along - 1), half * (2*(float64(row)+0.5)/float64(rows) - 1),
			cityHeight * (0.94 + 0.12*r[0])}
		eye = eye.Add(geom.Vec{0.15 * (r[1] - 0.5), 0.15 * (r[2] - 0.5), 0})
		turn, out := math.Pi/2*float64(i%5)+0.3*(r[3]-0.5), 0.75*cityHeight
		if i%5 == 4 {
			out = 0.12 * cityHeight // lookAt has no camera that looks straight down
		}
		sin, cos := math.Sincos(turn)
		views[i] = scene.Camera{Name: fmt.Sprintf("view_%03d.png", i), Width: o.Width, Height: o.Height,
			Model: scene.Pinhole,
			Fx:    focal, Fy: focal, Cx: float64(o.Width) / 2, Cy: float64(o.Height) / 2}
		scene.LookAt(&views[i], eye, geom.Vec{eye[0] + out*cos, eye[1] + out*sin, 0})
	}
	return views
}
