package synth

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"

	"vksplat/internal/atomicfile"
	"vksplat/internal/geom"
	"vksplat/internal/parallel"
	"vksplat/internal/philox"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// Options describe a procedural capture. Zero fields take the default.
type Options struct {
	Images        int        // photos, default 48, at least 3
	Width, Height int        // pixels, default 256x192
	Points        int        // points of the sparse cloud, default 5000
	Seed          uint64     // moves cameras a little and chooses the points
	Scale         float64    // length of a scene unit in the capture's frame, default 1
	Offset        [3]float64 // where the middle of the scene lies in the capture's frame
	City          bool       // a city from the air instead of objects on a table that are walked around
	// share of the points that stand right in front of a camera, as wrong matches of photos do; 0 to 1
	Wrong   float64
	Passers bool // people walk through a third of the photos, see HasPassers; not in a city
	// The sky is out of reach: it looks the same from all cameras, and the cloud has no points on it. Otherwise it is
	// painted on a dome where the floor ends, with points like all surfaces.
	Open bool
	Lens *Lens // that took the photos; nil: they are pinhole pictures. Not in a city
	// How far cameras move while the rows of their photos are read out, see motion; not in a city
	Shutter float64
	// Far adds cameras off the path of the others, after these, to be held out: no point is theirs. It opens the sky,
	// for some stand outside the dome; not in a city
	Far bool
}

// Lens is one that bends its pictures. Each pixel shows something.
type Lens struct {
	Model      scene.LensModel
	Focal      float64   // focal length in widths of the picture
	Distortion []float64 // parameters of the model after the principal point
}

// calibration is the lens in front of a picture of the given size.
func (l *Lens) calibration(width, height int) scene.Calibration {
	focal := l.Focal * float64(width)
	k := scene.Calibration{Model: l.Model, Width: width, Height: height, Params: []float64{focal}}
	if info, _ := l.Model.Info(); info.Focals == 2 {
		k.Params = append(k.Params, focal)
	}
	k.Params = append(k.Params, float64(width)/2, float64(height)/2)
	k.Params = append(k.Params, l.Distortion...)
	return k
}

// check refuses a lens that leaves pixels dark.
func (l *Lens) check(width, height int) error {
	optics, err := l.calibration(width, height).Optics(width, height)
	if err != nil {
		return fmt.Errorf("make capture: %w", err)
	}
	for _, corner := range [][2]float64{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
		if _, ok := optics.Ray(corner[0]*float64(width), corner[1]*float64(height)); !ok {
			return errors.New("make capture: the lens does not see as far as the corners of its pictures")
		}
	}
	return nil
}

// Bounds on what Write makes: far above any use, below what would fill a
// disk or overflow a size.
const (
	MaxImages   = 10000
	MinSide     = 16
	MaxSide     = 8192
	MinPoints   = 4
	MaxPoints   = 10_000_000
	MostShutter = 0.2
)

func (o Options) withDefaults() (Options, error) {
	set := func(v *int, value int) {
		if *v == 0 {
			*v = value
		}
	}
	o.Open = o.Open || o.Far
	set(&o.Images, 48)
	set(&o.Width, 256)
	set(&o.Height, 192)
	set(&o.Points, 5000)
	if o.Scale == 0 {
		o.Scale = 1
	}
	switch {
	case o.Images < 3 || o.Images > MaxImages:
		return o, fmt.Errorf("make capture: %d images, want 3 to %d", o.Images, MaxImages)
	case min(o.Width, o.Height) < MinSide || max(o.Width, o.Height) > MaxSide:
		return o, fmt.Errorf("make capture: %dx%d pixels, want sides of %d to %d", o.Width, o.Height, MinSide,
			MaxSide)
	case o.Points < MinPoints || o.Points > MaxPoints:
		return o, fmt.Errorf("make capture: %d points, want %d to %d", o.Points, MinPoints, MaxPoints)
	case !(o.Wrong >= 0 && o.Wrong <= 1):
		return o, fmt.Errorf("make capture: a share of %v wrong points, want 0 to 1", o.Wrong)
	case o.City && o.Passers:
		return o, errors.New("make capture: a city from the air has no passers-by")
	case o.Lens != nil && o.City:
		return o, errors.New("make capture: a city is photographed without distortion")
	case o.City && o.Shutter != 0:
		return o, errors.New("make capture: cameras stand still over a city")
	case o.City && o.Far:
		return o, errors.New("make capture: no cameras are far from a path over a city")
	case !(o.Shutter >= 0 && o.Shutter <= MostShutter):
		return o, fmt.Errorf("make capture: shutter %v, want 0 to %v", o.Shutter, MostShutter)
	case !(o.Scale > 0) || !scene.Finite64(o.Scale):
		return o, fmt.Errorf("make capture: scale %v is not positive", o.Scale)
	}
	for _, x := range o.Offset {
		if !scene.Finite64(x) {
			return o, fmt.Errorf("make capture: offset %v: %w", o.Offset, scene.ErrNotFinite)
		}
	}
	if o.Lens != nil {
		return o, o.Lens.check(o.Width, o.Height)
	}
	return o, nil
}

// Purposes of random numbers, the third word of the Philox counter; see package philox.
const (
	streamSynthCamera uint32 = 0x10011
	streamSynthPoint  uint32 = 0x10012
	streamSynthSplat  uint32 = 0x10013 // and the next
	streamSynthWrong  uint32 = 0x10015
)

// random returns four numbers of [0, 1) that depend on the seed, the stream and
// the id alone.
func (o *Options) random(stream uint32, id int) [4]float64 {
	bits := philox.Block([4]uint32{uint32(id), 0, 0, uint32(stream)}, philox.Key(o.Seed))
	var out [4]float64
	for i, b := range bits {
		out[i] = philox.Uniform(b)
	}
	return out
}

// Write writes a procedural capture into dir: images/view_NNN.png and a
// COLMAP model in sparse/0, or what WriteModel writes of cameras that move, with
// exact PINHOLE poses and points on visible surfaces. Same options, same bytes on one architecture. Photos are ray-cast
// with at least four and at most sixteen rays per pixel. Existing files of these
// names are replaced.
func Write(dir string, o Options) error {
	s, err := New(o)
	if err != nil {
		return err
	}
	images := filepath.Join(dir, "images")
	if err := os.MkdirAll(images, 0o755); err != nil {
		return atomicfile.WriteError("make folder", images, err)
	}
	errs := make([]error, len(s.views))
	parallel.For(len(s.views), func(i int) {
		picture := s.Photo(i, 1)
		errs[i] = atomicfile.Write(filepath.Join(images, s.views[i].Name), func(w io.Writer) error {
			return photo.EncodePNG(w, picture)
		})
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return s.WriteModel(dir, s.Cameras(), s.Points(), nil)
}

// Capture is a procedural scene and the cameras around it.
type Capture struct {
	o     Options
	world *synthWorld
	views []scene.Camera // in the frame of the scene
}

// New sets up the scene of a procedural capture.
func New(o Options) (*Capture, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Capture{o, newSynthWorld(), o.views()}
	if o.City {
		s = &Capture{o, o.newCityWorld(), o.cityViews()}
	}
	if o.Open {
		s.world.dome *= outOfReach
	}
	if o.Far {
		s.views = append(s.views, farViews(s.views[0])...)
	}
	return s, nil
}

// outOfReach is how much larger the dome is than the floor where the sky is to have no parallax.
const outOfReach = 1e5

// Cameras returns the cameras in the capture's frame, in the order of the photos.
func (s *Capture) Cameras() []scene.Camera {
	out := make([]scene.Camera, len(s.views))
	for i, c := range s.views {
		out[i] = s.o.place(c)
	}
	return out
}

// Photo draws photo i at 1/shrink of its size, rounded up: a pixel of it covers
// shrink x shrink of the photo, also beyond its edges.
func (s *Capture) Photo(i, shrink int) *image.RGBA {
	c, k := s.views[i], float64(shrink)
	c.Width, c.Height = (c.Width+shrink-1)/shrink, (c.Height+shrink-1)/shrink
	c.Fx, c.Fy, c.Cx, c.Cy = c.Fx/k, c.Fy/k, c.Cx/k, c.Cy/k
	return s.passed(i).photo(&c)
}

// Points returns the sparse cloud in the capture's frame. Point i was seen by camera i modulo their number, but for an
// open sky, which leaves points out. Far cameras see none.
func (s *Capture) Points() []scene.Point { return s.o.points(s.world, s.views[:s.o.Images]) }

// synthRings are the paths of the cameras: radius and height in scene units.
var synthRings = [3]struct{ radius, height float64 }{{4.3, 1.05}, {4.1, 1.85}, {3.7, 2.75}}

// views returns the cameras in the frame of the scene. Neighbours in name
// are on different rings and every ring is walked once around, so that any
// regular choice of held-out photos is spread over the scene.
func (o *Options) views() []scene.Camera {
	views := make([]scene.Camera, o.Images)
	focal := 0.87 * float64(o.Width)
	var taken *scene.Lens
	if o.Lens != nil {
		focal = o.Lens.Focal * float64(o.Width)
		taken = &scene.Lens{Calibration: o.Lens.calibration(o.Width, o.Height), R: geom.Identity}
	}
	for i := range views {
		jitter := o.random(streamSynthCamera, i)
		ring := synthRings[i%len(synthRings)]
		angle := 2 * math.Pi * (float64(i) + 0.6*(jitter[0]-0.5)) / float64(o.Images)
		s, c := math.Sincos(angle)
		radius := ring.radius + 0.3*(jitter[1]-0.5)
		eye := geom.Vec{radius * c, radius * s, ring.height + 0.25*(jitter[2]-0.5)}
		views[i] = scene.Camera{
			Name: fmt.Sprintf("view_%03d.png", i), Width: o.Width, Height: o.Height, Model: scene.Pinhole,
			Fx: focal, Fy: focal, Cx: float64(o.Width) / 2, Cy: float64(o.Height) / 2, Lens: taken,
		}
		scene.LookAt(&views[i], eye, geom.Vec{0, 0, 0.5 + 0.15*(jitter[3]-0.5)})
		views[i].Motion = o.motion(i, eye.Length())
	}
	return views
}

// place moves a camera from the frame of the scene to the capture's frame.
func (o *Options) place(c scene.Camera) scene.Camera {
	c.T = geom.TranslationOf(c.R, o.move(c.Center()))
	c.Motion.Move = geom.Scale(c.Motion.Move, o.Scale)
	return c
}

func (o *Options) move(p [3]float64) [3]float64 {
	for i := range p {
		p[i] = p[i]*o.Scale + o.Offset[i]
	}
	return p
}

type lens struct {
	camera *scene.Camera
	eye    geom.Vec
	optics *scene.Optics // nil: the picture is a pinhole's
	scale  float64       // pixels of the optics' in one of the camera's
}

func newLens(c *scene.Camera) lens {
	l := lens{camera: c, eye: c.Center()}
	if c.Lens != nil {
		k := &c.Lens.Calibration
		l.optics, _ = k.Optics(k.Width, k.Height) // Lens.check has made them
		l.scale = k.Params[0] / c.Fx
	}
	return l
}

// ray returns the ray through a point of the image, in pixels.
func (l *lens) ray(x, y float64) ray {
	c := l.camera
	at := [3]float64{(x - c.Cx) / c.Fx, (y - c.Cy) / c.Fy, 1}
	if l.optics != nil {
		at, _ = l.optics.Ray(x*l.scale, y*l.scale)
	}
	var d geom.Vec
	for j := range d {
		d[j] = at[0]*c.R[j] + at[1]*c.R[3+j] + at[2]*c.R[6+j]
	}
	return ray{l.eye, d.Unit()}
}

func (w *synthWorld) photo(c *scene.Camera) *image.RGBA {
	l := newLens(c)
	img := image.NewRGBA(image.Rect(0, 0, c.Width, c.Height))
	for y := range c.Height {
		row := l.ofRow(y)
		for x := range c.Width {
			p := w.pixel(&row, float64(x), float64(y)).Mul(255)
			img.SetRGBA(x, y, color.RGBA{R: scene.ToByte(p[0]), G: scene.ToByte(p[1]), B: scene.ToByte(p[2]), A: 0xff})
		}
	}
	return img
}

// pixelContrast is the difference between the four first rays of a pixel above
// which it gets all sixteen.
const pixelContrast = 0.06

// pixel averages rays over the pixel whose corner is (x, y): 2x2, and 4x4 where
// these differ.
func (w *synthWorld) pixel(l *lens, x, y float64) geom.Vec {
	sum, spread := w.grid(l, x, y, 2)
	if spread > pixelContrast {
		sum, _ = w.grid(l, x, y, 4)
	}
	return sum
}

// grid averages n x n rays and returns the largest spread of a channel.
func (w *synthWorld) grid(l *lens, x, y float64, n int) (mean geom.Vec, spread float64) {
	lo, hi := geom.Vec{2, 2, 2}, geom.Vec{-1, -1, -1}
	step := 1 / float64(n)
	for j := range n {
		for i := range n {
			c := w.color(l.ray(x+(float64(i)+0.5)*step, y+(float64(j)+0.5)*step))
			for k, v := range c {
				lo[k], hi[k] = min(lo[k], v), max(hi[k], v)
				mean[k] += v
			}
		}
	}
	for k := range mean {
		spread = max(spread, hi[k]-lo[k])
	}
	return mean.Mul(step * step), spread
}

// points returns the cloud: what eachPoint finds.
func (o *Options) points(w *synthWorld, views []scene.Camera) []scene.Point {
	points, sky := make([]scene.Point, o.Points), make([]bool, o.Points)
	o.eachPoint(w, views, func(i int, s surface, cam *scene.Camera) {
		if sky[i] = s.sky && o.Open; sky[i] {
			return
		}
		c := w.shade(&s).Mul(255)
		at := s.point
		if chance := o.random(streamSynthWrong, i); chance[0] < o.Wrong {
			at = inFront(cam, s, chance[1])
		}
		points[i] = scene.Point{Pos: o.move(at),
			Color: [3]uint8{scene.ToByte(c[0]), scene.ToByte(c[1]), scene.ToByte(c[2])}}
	})
	kept := points[:0]
	for i, p := range points {
		if !sky[i] {
			kept = append(kept, p)
		}
	}
	return kept
}

// inFront returns a place on the way from a camera to what it sees: 1 to 6 hundredths of it.
func inFront(c *scene.Camera, s surface, where float64) geom.Vec {
	eye := geom.Vec(c.Center())
	return eye.Add(s.point.Sub(eye).Mul(0.01 + 0.05*where))
}

// eachPoint calls f, on several goroutines, with what a camera sees through randomly chosen
// pixels: a cloud on visible surfaces, denser where the photos look more closely. Points come from
// the cameras in turn; within a camera they follow a two-dimensional sequence
// with even gaps (the R2 sequence: multiples of the inverses of the plastic
// number and of its square) from a random start.
func (o *Options) eachPoint(w *synthWorld, views []scene.Camera, f func(i int, s surface, c *scene.Camera)) {
	const alpha, beta = 0.7548776662466927, 0.5698402909980532
	parallel.For(len(views), func(id int) {
		start, l := o.random(streamSynthPoint, id), newLens(&views[id])
		for i := id; i < o.Points; i += len(views) {
			k := float64(i / len(views))
			_, u := math.Modf(start[0] + k*alpha)
			_, v := math.Modf(start[1] + k*beta)
			f(i, w.trace(l.ray(u*float64(o.Width), v*float64(o.Height))), &views[id])
		}
	})
}

// Depths returns the depth of each pixel of photo i at its centre, row by row: camera z in the capture's frame.
func (s *Capture) Depths(i int) []float32 {
	c, look := s.views[i], s.Look(i)
	depths := make([]float32, c.Width*c.Height)
	for p := range depths {
		z, _ := look(float64(p%c.Width)+0.5, float64(p/c.Width)+0.5)
		depths[p] = float32(z)
	}
	return depths
}

// Look returns what photo i shows at a place of it, in pixels: its depth, camera z in the capture's frame, and the
// direction in which the surface looks, in the camera's axes and towards it.
func (s *Capture) Look(i int) func(x, y float64) (depth float64, normal [3]float64) {
	c := &s.views[i]
	l := newLens(c)
	return func(x, y float64) (depth float64, normal [3]float64) {
		r := l.ray(x, y)
		at := s.world.trace(r)
		n := at.normal.Unit()
		if n.Dot(r.direction) > 0 {
			n = n.Mul(-1)
		}
		return c.ToCamera(at.point)[2] * s.o.Scale, geom.Rotate(c.R, n)
	}
}

// Find returns where photo i shows a point of the capture's frame, in pixels. Those beyond its edges and those behind
// something are not seen.
func (s *Capture) Find(i int) func(point [3]float64) (x, y float64, seen bool) {
	const slack = 1e-3 // of the distance
	c, l, w := &s.views[i], newLens(&s.views[i]), s.passed(i)
	return func(point [3]float64) (x, y float64, seen bool) {
		p := geom.Scale(geom.Sub(point, s.o.Offset), 1/s.o.Scale)
		at := c.ToCamera(p)
		if l.optics != nil {
			x, y, seen = l.optics.Project(at)
		} else {
			x, y, seen = c.Fx*at[0]/at[2]+c.Cx, c.Fy*at[1]/at[2]+c.Cy, at[2] > 0
		}
		seen = seen && x >= 0 && y >= 0 && x < float64(c.Width) && y < float64(c.Height)
		return x, y, seen && w.trace(l.ray(x, y)).t > (1-slack)*geom.Length(geom.Sub(p, l.eye))
	}
}
