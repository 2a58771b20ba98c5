package depth

import (
	"fmt"
	"math"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/photo"
)

const (
	FrameAuto   = "auto"   // the first of the others with as many normals that face the camera as any: see asGood
	FrameOpenCV = "opencv" // the camera's: right, down, ahead
	FrameOpenGL = "opengl" // the camera's: right, up, back
	FrameWorld  = "world"  // the capture's
)

var Frames = []string{FrameAuto, FrameOpenCV, FrameOpenGL, FrameWorld}

const opNormals = "read normal maps"

var normalForm = form{op: opNormals, setting: "normals", kind: "normal", channels: 3, png: normalsOfPNG,
	exr: exrNormals, hint: "maps are PNG files of red, green and blue, or NPY or EXR files of three floats"}

type NormalOptions struct {
	Dir   string // their folder, below the capture's or absolute
	Frame string // one of Frames
}

type Normals struct {
	Known   []scene.NormalMap // [cameras]
	Frame   string
	Facing  float64  // share of the normals that face their camera; the others do not count
	Missing []string // photos without a map
	Odd     float64  // share of the pixels that say something which is no direction of length 1; they do not count
	Doubt   []string // axes that were not chosen, and are about as good
}

// Counts returns how many cells of each camera's map have a normal.
func (n *Normals) Counts() []int {
	counts := make([]int, len(n.Known))
	for i := range n.Known {
		for _, word := range n.Known[i].Cells {
			if word != 0 {
				counts[i]++
			}
		}
	}
	return counts
}

// ReadNormals reads the normal maps of a capture's photos, which are named as depth maps are (Maps).
func ReadNormals(c *scene.Capture, o NormalOptions) (*Normals, error) {
	dir, files, missing, err := filesOf(c, o.Dir, &normalForm)
	if err != nil {
		return nil, err
	}
	n := &Normals{Known: make([]scene.NormalMap, len(files)), Frame: o.Frame, Missing: missing}
	maps := make([]normalReading, len(files))
	errs := make([]error, len(files))
	parallel.For(len(files), func(i int) {
		if files[i] != "" {
			errs[i] = maps[i].read(&c.Cameras[i], files[i])
		}
	})
	if err := refuseMaps(dir, files, errs); err != nil {
		return nil, err
	}
	if err := n.judge(dir, maps); err != nil {
		return nil, err
	}
	if err := n.choose(dir, maps); err != nil {
		return nil, err
	}
	parallel.For(len(maps), func(i int) { n.Known[i] = maps[i].facing(n.Frame) })
	return n, nil
}

// mostOdd is the largest share of pixels that may be no directions of length 1.
const mostOdd = 0.5

// judge refuses maps of numbers that are no normals, whatever the axes.
func (n *Normals) judge(dir string, maps []normalReading) error {
	used, odd, negative := 0, 0, false
	for i := range maps {
		used, odd, negative = used+maps[i].used, odd+maps[i].odd, negative || maps[i].negative
	}
	if used+odd == 0 {
		return fault.Data(opNormals, dir, normalForm.hint, "the normal maps hold no normal")
	}
	n.Odd = float64(odd) / float64(used+odd)
	if n.Odd > mostOdd {
		return fault.Data(opNormals, dir, "maps of floats hold directions of length 1, in numbers from -1 to 1; in "+
			"PNG files black to white stand for these", "%.0f %% of the pixels are not directions of length 1",
			100*n.Odd)
	}
	if !negative && n.Frame != FrameWorld {
		return fault.Data(opNormals, dir, "write 2 x - 1 of maps that hold numbers from 0 to 1; for normals of the "+
			"world that all look up give "+fault.Setting("normal-frame")+" world", "no number of the maps is below 0")
	}
	return nil
}

// Of the pixels of a cell at least this share must have a normal, and the length of their mean be at least that of
// directions that agree.
const (
	leastCover = 0.5
	leastAgree = 0.95
)

// What is shorter or longer than these is no direction: black and white are none, nor is grey.
const (
	shortestNormal = 0.5
	longestNormal  = 1.5
)

// alikeNumbers is how much the numbers of a pixel differ at most that says nothing: PNG files of 8 bits round.
const alikeNumbers = 0.02

// leastAlong is the least cosine between a ray and the camera's axis: what lies almost beside a fisheye has no depth.
const leastAlong = 0.08

// normalReading is what a photo's map says: in cells of the camera's pixels, in the map's own axes.
type normalReading struct {
	cam       *scene.Camera
	places    *photo.Places
	used, odd int  // pixels that are directions, and those that are none and not unknown either
	negative  bool // whether any number is
	scene.NormalMap
}

func (r *normalReading) read(c *scene.Camera, file string) error {
	m, err := readFile(file, &normalForm)
	if err != nil {
		return err
	}
	if err := m.checkShape(c, file, &normalForm); err != nil {
		return err
	}
	r.cam = c
	if r.places, err = photo.PlacesIn(c, m.width, m.height); err != nil {
		return &fault.Error{Op: opNormals, Path: file, Err: err}
	}
	shift := 0
	for c.Width>>shift*(c.Height>>shift) > mostKnown {
		shift++
	}
	r.NormalMap = scene.NewNormalMap(c.Width, c.Height, shift)
	sums, counts := make([]geom.Vec, len(r.Cells)), make([]int, len(r.Cells))
	for y := range c.Height {
		for x := range c.Width {
			u, v, ok := r.places.At(x, y)
			if !ok || r.places.Along(x, y) < leastAlong {
				continue
			}
			at := 3 * (min(v, m.height-1)*m.width + min(u, m.width-1))
			n := geom.Vec{float64(m.values[at]), float64(m.values[at+1]), float64(m.values[at+2])}
			if length, ok := r.direction(n); ok {
				cell := y>>shift*r.Columns + x>>shift
				sums[cell], counts[cell] = sums[cell].Add(n.Mul(1/length)), counts[cell]+1
			}
		}
	}
	for i, sum := range sums {
		n, length := float64(counts[i]), sum.Length()
		if n >= leastCover*r.pixels(i) && n > 0 && length >= leastAgree*n {
			r.Cells[i] = scene.PackNormal(sum.Mul(1 / length))
		}
	}
	return nil
}

// direction returns the length of a pixel's numbers and whether they are a direction, and counts it. Three that are
// equal, as of black, grey and white, and those that are no numbers say that nothing is known.
func (r *normalReading) direction(n geom.Vec) (length float64, ok bool) {
	length = n.Length()
	if ok = length >= shortestNormal && length <= longestNormal; ok {
		r.used++
		r.negative = r.negative || min(n[0], n[1], n[2]) < 0
	} else if max(n[0], n[1], n[2])-min(n[0], n[1], n[2]) > alikeNumbers {
		r.odd++
	}
	return length, ok
}

func (r *normalReading) pixels(cell int) float64 {
	x, y := cell%r.Columns<<r.Shift, cell/r.Columns<<r.Shift
	return float64(min(1<<r.Shift, r.cam.Width-x) * min(1<<r.Shift, r.cam.Height-y))
}

// turned returns a cell's normal in the camera's axes, and whether it faces the camera.
func (r *normalReading) turned(cell int, frame string) (n geom.Vec, faces bool) {
	n = scene.UnpackNormal(r.Cells[cell])
	switch frame {
	case FrameWorld:
		n = geom.Rotate(r.cam.R, n)
	case FrameOpenGL:
		n[1], n[2] = -n[1], -n[2]
		fallthrough
	default:
		n = r.places.Turn(n)
	}
	half := float64(int(1)<<r.Shift) / 2
	x, y := float64(cell%r.Columns<<r.Shift)+half, float64(cell/r.Columns<<r.Shift)+half
	return n, n.Dot(r.cam.ToCamera(r.cam.Place(x, y, 1))) < 0
}

// facing returns the normals that face the camera, in its axes.
func (r *normalReading) facing(frame string) scene.NormalMap {
	for i, word := range r.Cells {
		if word == 0 {
			continue
		}
		n, faces := r.turned(i, frame)
		if r.Cells[i] = 0; faces {
			r.Cells[i] = scene.PackNormal(n)
		}
	}
	return r.NormalMap
}

// leastFacing is the share of normals that must face their camera.
const leastFacing = 0.5

// choose finds out in what axes the maps are, and refuses those in which most surfaces look away.
func (n *Normals) choose(dir string, maps []normalReading) error {
	shares := facingShares(maps)
	if n.Frame == "" || n.Frame == FrameAuto {
		n.guess(shares)
	}
	n.Facing = shares[n.Frame]
	if math.IsNaN(n.Facing) { // of no cell pixels agree
		return fault.Data(opNormals, dir, normalForm.hint, "the normal maps hold no normal")
	}
	if n.Facing < leastFacing {
		return fault.Data(opNormals, dir, fmt.Sprintf("see what %s says: %.0f %% face it in axes of opencv, %.0f %% "+
			"of opengl, %.0f %% of the world", fault.Setting("normal-frame"), 100*shares[FrameOpenCV],
			100*shares[FrameOpenGL], 100*shares[FrameWorld]),
			"only %.0f %% of the normals face the camera in axes of %s", 100*n.Facing, n.Frame)
	}
	return nil
}

// asGood is how much less of all normals may face their camera in axes that are as good as others: noise and edges tip
// the balance by as much, where cameras look along the world's axes.
const asGood = 0.01

// guess takes the first of the frames that are as good as any.
func (n *Normals) guess(shares map[string]float64) {
	best := 0.0
	for _, share := range shares {
		best = max(best, share)
	}
	n.Frame = FrameOpenCV // also where no normal is known
	var good []string
	for _, frame := range Frames[1:] {
		if shares[frame] >= best-asGood {
			good = append(good, frame)
		}
	}
	if len(good) > 0 {
		n.Frame, n.Doubt = good[0], good[1:]
	}
}

// facingShares returns which share of all normals face their camera in each frame; not a number where there is none.
func facingShares(maps []normalReading) map[string]float64 {
	frames := Frames[1:]
	counts := make([][]int, len(maps)) // of normals, and of those that face the camera in each frame
	parallel.For(len(maps), func(i int) {
		counts[i] = make([]int, 1+len(frames))
		for cell, word := range maps[i].Cells {
			if word == 0 {
				continue
			}
			counts[i][0]++
			for k, frame := range frames {
				if _, faces := maps[i].turned(cell, frame); faces {
					counts[i][1+k]++
				}
			}
		}
	})
	all, shares := make([]int, 1+len(frames)), map[string]float64{}
	for _, list := range counts {
		for k, n := range list {
			all[k] += n
		}
	}
	for k, frame := range frames {
		shares[frame] = float64(all[1+k]) / float64(all[0])
	}
	return shares
}
