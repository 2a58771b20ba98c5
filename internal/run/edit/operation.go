package edit

import (
	"errors"
	"fmt"
	"math"

	"vksplat/scene/splatfile"
)

// Operation is a step of an edit: exactly one of its fields is set.
type Operation struct {
	Crop   *Crop       `json:"crop,omitempty"`
	Remove []uint32    `json:"remove,omitempty"` // runs of splats: number of the first, how many, and so on, ascending
	Up     *[3]float64 `json:"up,omitempty"`     // the up direction from now on, in the frame of the model's file
}

// Crop removes the splats whose centres are outside of a box, or those inside or on it. The box stands in the frame of
// the model after the last Up, as an export would have it now.
type Crop struct {
	Box  [6]float64 `json:"box"`            // least x, y, z, then greatest, before it is turned
	Turn float64    `json:"turn,omitempty"` // degrees about the vertical axis through the middle of the box
	Keep Side       `json:"keep"`
}

// Side says which splats a crop leaves.
type Side string

// The sides.
const (
	Inside  Side = "inside"
	Outside Side = "outside"
)

// mostNumber bounds what operations hold: float32 holds what becomes of it.
const mostNumber = 1e12

// check refuses what cannot be carried out on a model of n splats.
func (o *Operation) check(n int) error {
	set := 0
	for _, is := range [3]bool{o.Crop != nil, len(o.Remove) > 0, o.Up != nil} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return errors.New("an operation is one of crop, remove and up")
	case o.Crop != nil:
		return o.Crop.check()
	case o.Up != nil:
		return checkUp(o.Up)
	}
	return checkRuns(o.Remove, n)
}

func (c *Crop) check() error {
	for _, x := range append(c.Box[:], c.Turn) {
		if !(math.Abs(x) <= mostNumber) {
			return fmt.Errorf("crop: %g is not a coordinate", x)
		}
	}
	for k := range 3 {
		if c.Box[k] > c.Box[3+k] {
			return errors.New("crop: a box has the least x, y, z and then the greatest")
		}
	}
	if c.Keep != Inside && c.Keep != Outside {
		return fmt.Errorf("crop: what is kept is %q or %q", Inside, Outside)
	}
	return nil
}

func checkUp(up *[3]float64) error {
	length := 0.0
	for _, x := range up {
		length = max(length, math.Abs(x))
	}
	if !(length > 1e-9 && length <= mostNumber) || up[0]+up[1]+up[2] != up[0]+up[1]+up[2] {
		return errors.New("up: there is no such direction")
	}
	return nil
}

// checkRuns wants runs that ascend and end before n.
func checkRuns(runs []uint32, n int) error {
	if len(runs)%2 != 0 {
		return errors.New("remove: the number of a splat and how many follow each other")
	}
	next := uint64(0)
	for i := 0; i < len(runs); i += 2 {
		first, count := uint64(runs[i]), uint64(runs[i+1])
		if first < next || count == 0 || first+count > uint64(n) {
			return fmt.Errorf("remove: %d splats from number %d on, of %d", count, first, n)
		}
		next = first + count
	}
	return nil
}

// Runs writes ascending numbers as Operation.Remove has them.
func Runs(ids []uint32) (runs []uint32) {
	for _, id := range ids {
		if k := len(runs); k > 0 && runs[k-2]+runs[k-1] == id {
			runs[k-1]++
		} else {
			runs = append(runs, id, 1)
		}
	}
	return runs
}

// cut is a crop where it stands.
type cut struct {
	Crop
	up       splatfile.Similarity
	upright  bool // up changes nothing
	middle   [3]float64
	sin, cos float64
}

func newCut(c *Crop, up splatfile.Similarity) *cut {
	t := &cut{Crop: *c, up: up, upright: up == splatfile.Unmoved()}
	t.sin, t.cos = math.Sincos(c.Turn * math.Pi / 180)
	for k := range t.middle {
		t.middle[k] = (c.Box[k] + c.Box[3+k]) / 2
	}
	return t
}

// removes tells whether a splat goes whose centre is here, in the frame of the file.
func (t *cut) removes(mean []float32) bool {
	p := [3]float64{float64(mean[0]), float64(mean[1]), float64(mean[2])}
	if !t.upright {
		p = turned(&t.up.R, p)
	}
	if t.Turn != 0 { // the vertical axis is y: back by the angle
		x, z := p[0]-t.middle[0], p[2]-t.middle[2]
		p[0] = t.middle[0] + (float64(t.cos*x) - float64(t.sin*z))
		p[2] = t.middle[2] + (float64(t.sin*x) + float64(t.cos*z))
	}
	in := true
	for k, x := range p {
		in = in && x >= t.Box[k] && x <= t.Box[3+k]
	}
	return in == (t.Keep == Outside)
}

// turned rotates a point. Products are rounded before they are added, on every processor.
func turned(r *[9]float64, p [3]float64) (q [3]float64) {
	for i := range q {
		q[i] = float64(r[3*i]*p[0]) + float64(r[3*i+1]*p[1]) + float64(r[3*i+2]*p[2])
	}
	return q
}

// upright turns a model so that up becomes -y; of nil it changes nothing.
func upright(up *[3]float64) splatfile.Similarity {
	if up == nil {
		return splatfile.Unmoved()
	}
	s, err := splatfile.Upright(*up)
	if err != nil {
		return splatfile.Unmoved() // checkUp has refused it
	}
	return s
}
