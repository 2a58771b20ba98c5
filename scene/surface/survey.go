package surface

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"vksplat/internal/parallel"
	"vksplat/scene"
)

const (
	// side is how many voxels a block has along an edge, and blockVoxels in all.
	side        = 8
	blockVoxels = side * side * side
	// reachVoxels is how far from a surface distances are measured, in voxels: beyond it they count as that much in
	// front, and are not known behind.
	reachVoxels = 5
)

// View is a depth map with colours.
type View struct {
	Camera scene.Camera // a pinhole one, in the frame of the mesh
	Depth  []float32    // [Height*Width] camera z; 0: not known
	Color  []float32    // [Height*Width] rows of so many numbers, of which the first are red, green, blue from 0 to 1
	Stride int          // numbers of a pixel in Color
}

// key is the place of a block, in blocks.
type key [3]int32

func (a key) compare(b key) int {
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]), cmp.Compare(a[2], b[2]))
}

type Survey struct {
	voxel float64 // edge
	least uint16  // measurements of what is known
	most  int     // blocks
	seen  map[key]struct{}
}

// surveyBytes is what a block takes in a survey: its key in the map, which may be half empty, and in the sorted list.
const surveyBytes = 64

// NewSurvey begins a survey for voxels with an edge of so much, which takes so many bytes at most. What fewer than
// least views see is not known.
func NewSurvey(voxel float64, least uint16, bytes int64) *Survey {
	return &Survey{voxel: voxel, least: max(least, 1), most: int(bytes / surveyBytes), seen: map[key]struct{}{}}
}

const (
	// rowsAtOnce is how many rows of pixels a worker looks at.
	rowsAtOnce = 16
	// farthestBlock is up to which block cells have numbers of 32 bits.
	farthestBlock = math.MaxInt32/side - 1
)

// Add takes in the surface of a view. Its error is ErrNoRoom.
func (s *Survey) Add(v *View) error {
	step := s.pixelStep(v)
	eye, rays := v.Camera.Center(), newRays(&v.Camera)
	var mu sync.Mutex
	room := true
	parallel.For((v.Camera.Height+rowsAtOnce-1)/rowsAtOnce, func(part int) {
		found, last, outside := map[key]struct{}{}, key{math.MinInt32}, false
		for y := part * rowsAtOnce; y < min((part+1)*rowsAtOnce, v.Camera.Height); y += step {
			for x := 0; x < v.Camera.Width; x += step {
				z := float64(v.Depth[y*v.Camera.Width+x])
				if z == 0 {
					continue
				}
				ray := rays.at(x, y)
				for k := -reachVoxels; k <= reachVoxels; k += reachVoxels {
					at := z + float64(k)*s.voxel
					b, numbered := s.block(eye, ray, at)
					outside = outside || !numbered
					if at > 0 && b != last {
						found[b], last = struct{}{}, b
					}
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if room = room && !outside && len(s.seen) <= s.most; !room {
			return
		}
		for b := range found {
			s.seen[b] = struct{}{}
		}
	})
	if !room || len(s.seen) > s.most {
		return fmt.Errorf("%w: views show too many blocks of %d voxels", ErrNoRoom, blockVoxels)
	}
	return nil
}

// pixelStep is how many pixels apart the farthest surface of a view can be looked at without missing a block: half of a
// block.
func (s *Survey) pixelStep(v *View) int {
	farthest := float32(0)
	for _, z := range v.Depth {
		farthest = max(farthest, z)
	}
	if farthest == 0 {
		return rowsAtOnce
	}
	pixel := float64(farthest) / min(v.Camera.Fx, v.Camera.Fy)
	step := 1
	for 2*step <= rowsAtOnce && float64(2*step)*pixel <= side*s.voxel/2 { // a power of two: rowsAtOnce is a multiple
		step *= 2
	}
	return step
}

// block is where a line of sight is at a camera z, and whether that has a number.
func (s *Survey) block(eye, ray [3]float64, z float64) (b key, numbered bool) {
	for k := range 3 {
		at := math.Floor((eye[k] + ray[k]*z) / (s.voxel * side))
		if !(math.Abs(at) < farthestBlock) {
			return b, false
		}
		b[k] = int32(at)
	}
	return b, true
}

// Blocks is how many blocks of 8x8x8 voxels have a surface in or near them.
func (s *Survey) Blocks() int { return len(s.seen) }

// sorted lists the blocks by x, then y, then z.
func (s *Survey) sorted() []key {
	list := make([]key, 0, len(s.seen))
	for b := range s.seen {
		list = append(list, b)
	}
	slices.SortFunc(list, key.compare)
	return list
}

// rays are the lines of sight of a camera's pixels.
type rays struct{ right, down, forward [3]float64 }

func newRays(c *scene.Camera) (r rays) {
	for k := range 3 { // of a camera z of 1, at the middle of the first pixel
		r.right[k], r.down[k] = c.R[k]/c.Fx, c.R[3+k]/c.Fy
		r.forward[k] = c.R[6+k] + (0.5-c.Cx)*r.right[k] + (0.5-c.Cy)*r.down[k]
	}
	return r
}

// at is the line of sight of a pixel, so long that its camera z is 1.
func (r *rays) at(x, y int) (ray [3]float64) {
	for k := range 3 {
		ray[k] = r.forward[k] + float64(x)*r.right[k] + float64(y)*r.down[k]
	}
	return ray
}
