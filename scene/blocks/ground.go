// Package blocks divides a capture that fits no device into blocks on the ground plane, each of which is trained by
// itself: where a block lies, which cameras see it, and from which points it begins. Every place on the ground belongs
// to the core of exactly one block.
package blocks

import (
	"encoding/json"
	"fmt"
	"math"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// Ground is the plane that is divided, as directions in the capture's frame: unit vectors, at right angles.
type Ground struct {
	X  [3]float64 `json:"x"` // along the longer side of the capture
	Y  [3]float64 `json:"y"`
	Up [3]float64 `json:"up"`
}

// At returns where on the ground a point stands, in the capture's units.
func (g *Ground) At(p [3]float64) [2]float64 { return [2]float64{geom.Dot(g.X, p), geom.Dot(g.Y, p)} }

// Check refuses axes that do not span a plane.
func (g *Ground) Check() error {
	const tolerance = 1e-6
	for _, pair := range [][2][3]float64{{g.X, g.Y}, {g.Y, g.Up}, {g.Up, g.X}} {
		a, b := pair[0], pair[1]
		if !(math.Abs(geom.Dot(a, b)) < tolerance) || !(math.Abs(geom.Dot(a, a)-1) < tolerance) {
			return fmt.Errorf("the axes of the ground %v, %v, %v are not at right angles, or not of length 1", g.X, g.Y,
				g.Up)
		}
	}
	return nil
}

// newGround lays the axes along the sides of the rectangle of least area around the cameras, X along its longer side.
// Of rectangles that are as good, that is taken which is turned least.
func newGround(cams []scene.Camera, up [3]float64) Ground {
	first := [3]float64{1, 0, 0}
	if math.Abs(up[0]) > 0.8 {
		first = [3]float64{0, 1, 0}
	}
	first = geom.Vec(geom.Sub(first, geom.Scale(up, geom.Dot(first, up)))).Unit()
	second := geom.Cross(up, first)
	best, area := Ground{}, math.Inf(1)
	for degree := range 90 {
		sin, cos := math.Sincos(float64(degree) * math.Pi / 180)
		g := Ground{Up: up, X: geom.Add(geom.Scale(first, cos), geom.Scale(second, sin)),
			Y: geom.Add(geom.Scale(second, cos), geom.Scale(first, -sin))}
		size := boundsOf(cams, &g).size()
		if a := size[0] * size[1]; a < area*(1-1e-9) {
			best, area = g, a
			if size[1] > size[0]*(1+1e-9) {
				best.X, best.Y = g.Y, geom.Scale(g.X, -1)
			}
		}
	}
	return best
}

func boundsOf(cams []scene.Camera, g *Ground) Rect {
	r := Rect{[2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}}
	for i := range cams {
		for k, x := range g.At(cams[i].Center()) {
			r.Min[k], r.Max[k] = min(r.Min[k], x), max(r.Max[k], x)
		}
	}
	return r
}

// Rect is an area of the ground, in the axes of Ground; sides may lie at infinity, which JSON has as null.
type Rect struct {
	Min, Max [2]float64
}

// Holds reports whether a place is in the area. Its least coordinates belong to it, its greatest do not: areas side by
// side share no place.
func (r *Rect) Holds(at [2]float64) bool {
	return at[0] >= r.Min[0] && at[0] < r.Max[0] && at[1] >= r.Min[1] && at[1] < r.Max[1]
}

func (r Rect) size() [2]float64 { return [2]float64{r.Max[0] - r.Min[0], r.Max[1] - r.Min[1]} }

// within cuts an area to another.
func (r Rect) within(o Rect) Rect {
	for k := range 2 {
		r.Min[k], r.Max[k] = min(max(r.Min[k], o.Min[k]), o.Max[k]), max(min(r.Max[k], o.Max[k]), o.Min[k])
	}
	return r
}

// rectJSON is a Rect with null for what is infinite.
type rectJSON struct {
	Min [2]*float64 `json:"min"`
	Max [2]*float64 `json:"max"`
}

// MarshalJSON writes sides at infinity as null.
func (r Rect) MarshalJSON() ([]byte, error) {
	var out rectJSON
	for k := range 2 {
		if !math.IsInf(r.Min[k], 0) {
			out.Min[k] = &r.Min[k]
		}
		if !math.IsInf(r.Max[k], 0) {
			out.Max[k] = &r.Max[k]
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Rect) UnmarshalJSON(data []byte) error {
	var in rectJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	for k := range 2 {
		r.Min[k], r.Max[k] = math.Inf(-1), math.Inf(1)
		if in.Min[k] != nil {
			r.Min[k] = *in.Min[k]
		}
		if in.Max[k] != nil {
			r.Max[k] = *in.Max[k]
		}
	}
	return nil
}
