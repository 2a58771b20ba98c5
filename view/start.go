package view

import (
	"math"
	"slices"
	"strings"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// Start is the first view of a scene, in the viewer's frame: right-handed, y up.
type Start struct {
	Rotation [4]float64 // unit quaternion x, y, z, w: from the model's frame to the viewer's
	Position [3]float64
	Target   [3]float64 // what is looked at, and turned about
	Picture  [2]float64 // width and height of what must be seen, at distance 1
}

const (
	// maxRoll is the sine of how far a photo's horizon may be tilted, 5 degrees, for its camera to be started at: the
	// viewer's is always level.
	maxRoll = 0.087
	// frameTangent is half the width and height of the first view where there are no photos, at distance 1: 60 degrees.
	frameTangent = 0.577
	// frameMargin is how much farther away that view is than nine tenths of the splats need, for what stands out of
	// them.
	frameMargin = 1.25
	// maxTangent bounds the same for lenses that see all around: 120 degrees.
	maxTangent = 1.73
)

type vector = [3]float64

func row(m [9]float64, i int) vector { return vector{m[3*i], m[3*i+1], m[3*i+2]} }

// StartAt chooses the first view: a training camera where there are any, the whole scene otherwise. Vertical is what
// the model's file says of its vertical axis, "" for nothing. Cameras and positions (some of the model's splats are
// enough) are in the model's frame.
func StartAt(cameras []scene.Camera, vertical string, positions [][3]float64) Start {
	up, err := scene.MeanUp(cameras)
	if err != nil {
		up = upAlong(vertical)
	}
	if len(cameras) == 0 {
		return frameAll(up, positions)
	}
	c := &cameras[levelCamera(cameras, up)]
	forward, at := row(c.R, 2), c.Center()
	r := levelFrame(up, forward)
	s := Start{Rotation: quaternion(r), Position: geom.Rotate(r, at), Picture: pictureOf(c)}
	s.Target = geom.Rotate(r, geom.Add(at, geom.Scale(forward, medianDepth(c, s.Picture, positions))))
	return s
}

// Up is the mean of the cameras' up vectors, a unit vector in their frame; where they agree on none it is the frame's
// own, -y.
func Up(cameras []scene.Camera) [3]float64 {
	if up, err := scene.MeanUp(cameras); err == nil {
		return up
	}
	return upAlong("")
}

// upAlong is the up vector that "z" as a vertical axis names, with a sign if it has one. Without a sign y means -y,
// because files whose vertical axis is y hold COLMAP's frame, as all do that say nothing.
func upAlong(axis string) vector {
	switch strings.ToLower(strings.TrimSpace(axis)) {
	case "x", "+x":
		return vector{1, 0, 0}
	case "-x":
		return vector{-1, 0, 0}
	case "+y":
		return vector{0, 1, 0}
	case "z", "+z":
		return vector{0, 0, 1}
	case "-z":
		return vector{0, 0, -1}
	}
	return vector{0, -1, 0}
}

// levelCamera is the first camera whose horizon is level, or the one where it is most.
func levelCamera(cameras []scene.Camera, up vector) int {
	best, least := 0, math.Inf(1)
	for i := range cameras {
		roll := math.Abs(geom.Dot(row(cameras[i].R, 0), up))
		if roll < maxRoll {
			return i
		}
		if roll < least {
			best, least = i, roll
		}
	}
	return best
}

// levelFrame is the rotation into a frame whose y is up and in which forward, but for its slope, is -z.
func levelFrame(up, forward vector) [9]float64 {
	back := geom.Sub(geom.Scale(up, geom.Dot(forward, up)), forward)
	for axis := 2; geom.Vec(back).Length() < 1e-3; axis-- { // forward is vertical: any direction will do
		var e vector
		e[axis] = -1
		back = geom.Add(e, geom.Scale(up, -geom.Dot(e, up)))
	}
	back = geom.Vec(back).Unit()
	right := geom.Cross(up, back)
	return [9]float64{right[0], right[1], right[2], up[0], up[1], up[2], back[0], back[1], back[2]}
}

// quaternion gives x, y, z, w of a rotation.
func quaternion(r [9]float64) [4]float64 {
	q := scene.Camera{R: r}.Quat()
	return [4]float64{q[1], q[2], q[3], q[0]}
}

// pictureOf is the size of a camera's photo at distance 1.
func pictureOf(c *scene.Camera) [2]float64 {
	half := [2]float64{float64(c.Width) / (2 * c.Fx), float64(c.Height) / (2 * c.Fy)}
	for i, t := range half {
		if c.Model == scene.Fisheye { // t is an angle
			t = math.Tan(min(t, math.Atan(maxTangent)))
		}
		half[i] = 2 * min(t, maxTangent)
	}
	return half
}

// medianDepth is how far away the splats are that stand in the middle of a camera's picture.
func medianDepth(c *scene.Camera, picture [2]float64, positions [][3]float64) float64 {
	var depths []float64
	for _, p := range positions {
		at := c.ToCamera(p)
		if at[2] > 0 && math.Abs(at[0]) < picture[0]/4*at[2] && math.Abs(at[1]) < picture[1]/4*at[2] {
			depths = append(depths, at[2])
		}
	}
	if len(depths) == 0 {
		return 1
	}
	return median(depths)
}

// frameAll looks at the bulk of the splats.
func frameAll(up vector, positions [][3]float64) Start {
	r, centre, away := overview(up, positions)
	middle := geom.Rotate(r, centre)
	return Start{Rotation: quaternion(r), Position: geom.Add(middle, away), Target: middle,
		Picture: [2]float64{2 * frameTangent, 2 * frameTangent}}
}

// Overview is a camera that sees the bulk of a model's splats, of which positions are some, the frame in which these
// are at the origin and at distance 1 from the camera, and up. Vertical is what the model's file says of its vertical
// axis.
func Overview(vertical string, positions [][3]float64) (c scene.Camera, f scene.Frame, up [3]float64) {
	up = upAlong(vertical)
	r, centre, away := overview(up, positions)
	back := geom.Rotate(geom.Transposed(r), away)
	forward := geom.Scale(geom.Vec(back).Unit(), -1)
	right := geom.Vec(geom.Cross(forward, up)).Unit()
	down := geom.Cross(forward, right)
	eye := geom.Add(centre, back)
	c = scene.Camera{R: [9]float64{right[0], right[1], right[2], down[0], down[1], down[2], forward[0], forward[1],
		forward[2]},
		T: vector{-geom.Dot(right, eye), -geom.Dot(down, eye), -geom.Dot(forward, eye)}}
	return c, scene.Frame{Center: centre, Scale: 1 / geom.Vec(back).Length()}, up
}

// Outside is a place from where one sees the bulk of positions, and their middle. up is a unit vector in their frame.
func Outside(up [3]float64, positions [][3]float64) (eye, middle [3]float64) {
	r, centre, away := overview(up, positions)
	return geom.Add(centre, geom.Rotate(geom.Transposed(r), away)), centre
}

// belowSky returns the positions without those of a sky, which may be more than those of the scene: without what is
// much farther away than others from where many are close together.
func belowSky(positions [][3]float64) [][3]float64 {
	const (
		looked  = 1000 // positions that are looked at, and
		tried   = 50   // how many of them as the middle
		share   = 0.3  // of the positions that are about it
		farther = 20   // times as far away as those: the sky
	)
	var some [][3]float64
	for i := 0; i < len(positions); i += 1 + len(positions)/looked {
		some = append(some, positions[i])
	}
	var middle vector
	reach := math.Inf(1)
	for i := 0; i < len(some); i += 1 + len(some)/tried {
		distances := distancesFrom(some[i], some)
		if d := distances[int(share*float64(len(distances)))]; d < reach {
			middle, reach = some[i], d
		}
	}
	if reach == 0 { // they are in one place
		return positions
	}
	return slices.DeleteFunc(slices.Clone(positions), func(p vector) bool {
		return geom.Vec(geom.Sub(p, middle)).Length() > farther*reach
	})
}

// distancesFrom is how far positions are from a place, the nearest first.
func distancesFrom(place vector, positions [][3]float64) []float64 {
	distances := make([]float64, len(positions))
	for i, p := range positions {
		distances[i] = geom.Vec(geom.Sub(p, place)).Length()
	}
	slices.Sort(distances)
	return distances
}

// spread is the middle of positions and how far they are from it, the nearest first.
func spread(positions [][3]float64) (centre vector, distances []float64) {
	for axis := range 3 {
		list := make([]float64, len(positions))
		for i, p := range positions {
			list[i] = p[axis]
		}
		centre[axis] = median(list)
	}
	return centre, distancesFrom(centre, positions)
}

// overview is where the bulk of the splats is, and where one sees it from a little above, along z of the model's frame
// as far as that is level: away from there in the viewer's axes, into which r turns.
func overview(up vector, positions [][3]float64) (r [9]float64, centre, away vector) {
	centre, distances := spread(belowSky(positions))
	radius := 1.0
	if n := len(distances); n > 0 && distances[n*9/10] > 0 { // some are far away in most scenes
		radius = distances[n*9/10]
	}
	away = geom.Scale(geom.Vec{0, 0.3, 1}.Unit(), frameMargin*radius/math.Sin(math.Atan(frameTangent)))
	return levelFrame(up, vector{0, 0, 1}), centre, away
}

// median of a list, which it sorts; 0 of none.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}
