package blocks

import (
	"slices"

	"github.com/kelindar/bitmap"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/colmap"
)

// What decides that a camera is trained with a block, and what it gets of the points outside.
const (
	// seenShare of a photo's points within a block's margin: less is a corner of the photo, and the photo's other
	// blocks have it.
	seenShare = 0.15
	// thinning: of the points beyond the margin that the block's cameras see, one in so many is kept. What lies there
	// has to be explained, or it would be by floaters within the block; but it need not be good, because the merged
	// scene has it from other blocks.
	thinning = 8
	// maxProjected is about how many points are projected into a camera without tracks.
	maxProjected = 1 << 16
)

// Sight is a capture on its ground: what is needed to divide it in different ways.
type Sight struct {
	Ground  Ground
	capture *scene.Capture
	train   []int  // cameras that are trained on
	bounds  Rect   // around those
	tracked []bool // by camera: the reconstruction says which points it saw
	list    []weighed
	places  [][2]float64 // of the points
}

// NewSight finds the ground of a capture, which is in its own frame. train are the cameras to train on; up is the
// up direction, nil to find it.
func NewSight(c *scene.Capture, train []int, up *[3]float64) (*Sight, error) {
	s := &Sight{capture: c, train: train, tracked: make([]bool, len(c.Cameras))}
	cams := make([]scene.Camera, len(train))
	for i, id := range train {
		cams[i] = c.Cameras[id]
	}
	if up == nil {
		found, err := findUp(cams)
		if err != nil {
			return nil, &fault.Error{Op: "find the ground", Path: c.Model, Err: err,
				Hint: "say where up is, in the capture's frame: " + fault.Setting("up") + " X,Y,Z"}
		}
		up = &found
	}
	s.Ground = newGround(cams, geom.Vec(*up).Unit())
	s.bounds = boundsOf(cams, &s.Ground)
	s.list = weigh(c, train, &s.Ground)
	s.places = make([][2]float64, len(c.Points))
	for i := range c.Points {
		s.places[i] = s.Ground.At(c.Points[i].Pos)
	}
	err := colmap.EachTrack(c, func(_ int, cams []int) {
		for _, i := range cams {
			s.tracked[i] = true
		}
	})
	return s, err
}

// Block is a part of the ground, with what it is trained on.
type Block struct {
	Core    Rect          // what the merged scene has of it; the cores fill the ground
	Margin  Rect          // with its neighbours' edges
	Cameras bitmap.Bitmap // of the capture's, those that see it, held-out ones among them
	Points  bitmap.Bitmap // of the capture's, those that it begins from
	Inside  int           // of these, within the margin
}

// Divide cuts the ground into blocks and finds their cameras and points.
func (s *Sight) Divide(columns, rows int, overlap float64) ([]Block, error) {
	cores, err := split(s.list, columns, rows)
	if err != nil {
		return nil, err
	}
	list := make([]Block, len(cores))
	for k, core := range cores {
		list[k] = Block{Core: core, Margin: margin(core, s.bounds, overlap)}
	}
	if err := s.findCameras(list); err != nil {
		return nil, err
	}
	return list, s.findPoints(list)
}

// findCameras gives each block the cameras that see it: those with enough of their points in its margin, those that
// stand there and see any of it, and each camera to the block that it sees most of.
func (s *Sight) findCameras(list []Block) error {
	c := s.capture
	seen, all := make([][]int, len(c.Cameras)), make([]int, len(c.Cameras)) // points, by camera and block
	for i := range seen {
		seen[i] = make([]int, len(list))
	}
	note := func(cam, point int) {
		all[cam]++
		for k := range list {
			if list[k].Margin.Holds(s.places[point]) {
				seen[cam][k]++
			}
		}
	}
	err := colmap.EachTrack(c, func(point int, cams []int) {
		for _, i := range cams {
			note(i, point)
		}
	})
	if err != nil {
		return err
	}
	stride := 1 + len(c.Points)/maxProjected
	parallel.For(len(c.Cameras), func(i int) {
		for p := 0; p < len(c.Points) && !s.tracked[i]; p += stride {
			if c.Cameras[i].Sees(c.Points[p].Pos) {
				note(i, p)
			}
		}
	})
	for i := range c.Cameras {
		at := s.Ground.At(c.Cameras[i].Center())
		most := slices.Max(seen[i])
		for k := range list {
			n := seen[i][k]
			standing := n > 0 && list[k].Margin.Holds(at)
			if n > 0 && (float64(n) >= seenShare*float64(all[i]) || n == most) || standing || all[i] == 0 &&
				list[k].Core.Holds(at) {
				list[k].Cameras.Set(uint32(i))
			}
		}
	}
	return nil
}

// findPoints gives each block the points in its margin and some of those beyond that its training cameras see.
func (s *Sight) findPoints(list []Block) error {
	c := s.capture
	for k := range list {
		list[k].Points = make(bitmap.Bitmap, (len(c.Points)+63)/64)
	}
	parallel.For(len(list), func(k int) {
		b := &list[k]
		for p, at := range s.places {
			if b.Margin.Holds(at) {
				b.Points.Set(uint32(p))
				b.Inside++
			}
		}
	})
	var train bitmap.Bitmap
	for _, i := range s.train {
		train.Set(uint32(i))
	}
	err := colmap.EachTrack(c, func(point int, cams []int) {
		for k := range list {
			b := &list[k]
			if point%thinning == 0 && slices.ContainsFunc(cams, func(i int) bool {
				return train.Contains(uint32(i)) && b.Cameras.Contains(uint32(i))
			}) {
				b.Points.Set(uint32(point))
			}
		}
	})
	if err != nil {
		return err
	}
	parallel.For(len(list), func(k int) {
		b := &list[k]
		b.Cameras.Range(func(i uint32) {
			cam := &c.Cameras[i]
			for p := 0; p < len(c.Points) && !s.tracked[i] && train.Contains(i); p += thinning {
				if !b.Points.Contains(uint32(p)) && cam.Sees(c.Points[p].Pos) {
					b.Points.Set(uint32(p))
				}
			}
		})
	})
	return nil
}
