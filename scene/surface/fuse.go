package surface

import (
	"errors"
	"fmt"
	"math"

	"vksplat/internal/parallel"
)

// BlockBytes is the memory of a block while distances are measured in it.
const BlockBytes = blockVoxels*(4+2+2+3*2) + blockVoxels*4 + 64

// ErrNoRoom says that voxels are too small: of the scene for their numbers or for memory, or of one layer of blocks.
var ErrNoRoom = errors.New("the scene's voxels do not fit")

// Views hands all views to use, one after the other, in the same order every time. A view is use's until it returns.
type Views func(use func(v *View) error) error

// slab is some layers of blocks, and one more at its end of which only the distances are used.
type slab struct {
	voxel  float64
	keys   []key
	place  map[key]int32
	own    int // of keys; those of the layer behind follow
	least  uint16
	voxels voxels
}

// voxels of blocks: row z fastest, then y, then x.
type voxels struct {
	distance []float32 // mean, in reaches: 1 is as far in front of the surface as is measured, -1 as far behind
	weight   []uint16  // measurements
	hue      []uint16  // measurements of colour
	color    []uint16  // [3] mean, in parts of 65535
}

// Fuse measures distances from all views and makes the mesh of what is known. At any time blocks take at most so many
// bytes; where the survey has more, views are asked for again and again.
func (s *Survey) Fuse(views Views, bytes int64) (*Mesh, error) {
	keys := s.sorted()
	m := &mesher{mesh: &Mesh{}, border: map[cell]uint32{}}
	most := int(max(bytes/BlockBytes, 1))
	for first := 0; first < len(keys); {
		own, all := layers(keys[first:], most)
		if own == 0 {
			return nil, fmt.Errorf("%w: a layer of it has %d blocks, there is room for %d", ErrNoRoom, all, most)
		}
		b := s.newSlab(keys[first:first+all], own)
		if err := views(func(v *View) error { b.measure(v); return nil }); err != nil {
			return nil, err
		}
		m.add(b)
		first += own
	}
	m.mesh.orient()
	return m.mesh, nil
}

// Passes is how often Fuse draws all views within the given bytes.
func (s *Survey) Passes(bytes int64) (n int) {
	keys := s.sorted()
	for first := 0; first < len(keys); n++ {
		own, _ := layers(keys[first:], int(max(bytes/BlockBytes, 1)))
		if own == 0 { // which is an error of Fuse
			break
		}
		first += own
	}
	return n
}

// layers is how many of the sorted blocks whole layers of x make with the one behind, and how many without it. Where
// not even one fits, own is 0 and all is what it would take.
func layers(keys []key, most int) (own, all int) {
	end := func(first int) int { // of the layer that begins there
		n := first
		for n < len(keys) && keys[n][0] == keys[first][0] {
			n++
		}
		return n
	}
	behind := func(n int) int { // with the layer that touches what ends there
		if n < len(keys) && keys[n][0] == keys[n-1][0]+1 {
			return end(n)
		}
		return n
	}
	for n := 0; n < len(keys); {
		n = end(n)
		with := behind(n)
		if with > most {
			if own == 0 {
				all = with
			}
			return own, all
		}
		own, all = n, with
	}
	return own, all
}

func (s *Survey) newSlab(keys []key, own int) *slab {
	n := len(keys) * blockVoxels
	b := &slab{voxel: s.voxel, least: s.least, keys: keys, own: own, place: make(map[key]int32, len(keys)),
		voxels: voxels{make([]float32, n), make([]uint16, n), make([]uint16, n), make([]uint16, 3*n)}}
	for i, k := range keys {
		b.place[k] = int32(i)
	}
	return b
}

// depthTile is the edge in pixels of the squares of which the greatest depth is known.
const depthTile = 16

// farthest is the greatest depth of each square of a view's pixels.
type farthest struct {
	columns, rows int
	depth         []float32
}

func newFarthest(v *View) *farthest {
	f := &farthest{columns: (v.Camera.Width + depthTile - 1) / depthTile,
		rows: (v.Camera.Height + depthTile - 1) / depthTile}
	f.depth = make([]float32, f.columns*f.rows)
	parallel.For(f.rows, func(row int) {
		for y := row * depthTile; y < min((row+1)*depthTile, v.Camera.Height); y++ {
			for x, z := range v.Depth[y*v.Camera.Width : (y+1)*v.Camera.Width] {
				at := &f.depth[row*f.columns+x/depthTile]
				*at = max(*at, z)
			}
		}
	})
	return f
}

// within is the greatest depth of the squares that a rectangle of pixels touches; 0 where it is outside the picture.
func (f *farthest) within(left, top, right, bottom float64) (z float32) {
	index := func(x float64, n int) int { return int(min(max(x/depthTile, -1), float64(n))) }
	for row := max(index(top, f.rows), 0); row <= min(index(bottom, f.rows), f.rows-1); row++ {
		for column := max(index(left, f.columns), 0); column <= min(index(right, f.columns), f.columns-1); column++ {
			z = max(z, f.depth[row*f.columns+column])
		}
	}
	return z
}

// measure takes a view into account.
func (b *slab) measure(v *View) {
	f := newFarthest(v)
	parallel.For(len(b.keys), func(i int) {
		if b.sees(v, f, i) {
			b.measureBlock(v, i)
		}
	})
}

// origin is the middle of the first voxel of a block.
func (b *slab) origin(i int) (p [3]float64) {
	for k := range 3 {
		p[k] = (float64(b.keys[i][k])*side + 0.5) * b.voxel
	}
	return p
}

// sees says whether a view may tell something of a block: whether it is in the picture, and not far behind all that is
// seen there.
func (b *slab) sees(v *View, f *farthest, i int) bool {
	middle := b.origin(i)
	for k := range 3 {
		middle[k] += (side - 1) * b.voxel / 2
	}
	c := &v.Camera
	p, radius := c.ToCamera(middle), side*b.voxel*math.Sqrt(3)/2
	near := p[2] - radius
	if p[2]+radius <= 0 {
		return false
	}
	if near <= 0 {
		return true
	}
	// A sphere's picture lies between those of its box at its nearest side.
	x, y, r := c.Fx*p[0], c.Fy*p[1], radius
	left, right := bounds(x-c.Fx*r, x+c.Fx*r, near, p[2]+radius)
	top, bottom := bounds(y-c.Fy*r, y+c.Fy*r, near, p[2]+radius)
	z := f.within(left+c.Cx, top+c.Cy, right+c.Cx, bottom+c.Cy)
	return z > 0 && near <= float64(z)+reachVoxels*b.voxel
}

// bounds is between what two numbers can lie that are divided by something between near and far.
func bounds(low, high, near, far float64) (float64, float64) {
	return min(low/near, low/far), max(high/near, high/far)
}

// measureBlock takes a view into account in one block.
func (b *slab) measureBlock(v *View, i int) {
	c, reach := &v.Camera, reachVoxels*b.voxel
	start := c.ToCamera(b.origin(i))
	at := i * blockVoxels
	for x := range side {
		for y := range side {
			for z := range side {
				n := at + (x*side+y)*side + z
				fx, fy, fz := float64(x)*b.voxel, float64(y)*b.voxel, float64(z)*b.voxel
				pz := start[2] + c.R[6]*fx + c.R[7]*fy + c.R[8]*fz
				if pz <= 0 {
					continue
				}
				px := start[0] + c.R[0]*fx + c.R[1]*fy + c.R[2]*fz
				py := start[1] + c.R[3]*fx + c.R[4]*fy + c.R[5]*fz
				u, w := math.Floor(c.Fx*px/pz+c.Cx), math.Floor(c.Fy*py/pz+c.Cy)
				if u < 0 || w < 0 || u >= float64(c.Width) || w >= float64(c.Height) {
					continue
				}
				pixel := int(w)*c.Width + int(u)
				seen := float64(v.Depth[pixel])
				if seen == 0 || seen-pz < -reach {
					continue
				}
				b.voxels.take(n, min((seen-pz)/reach, 1), v.Color[pixel*v.Stride:])
			}
		}
	}
}

func (v *voxels) take(n int, distance float64, rgb []float32) {
	if w := v.weight[n]; w < math.MaxUint16 {
		v.distance[n] += float32((distance - float64(v.distance[n])) / float64(w+1))
		v.weight[n]++
	}
	w := v.hue[n]
	if distance >= 1 || w == math.MaxUint16 {
		return
	}
	v.hue[n]++
	for k := range 3 {
		at := &v.color[3*n+k]
		x := 65535 * float64(min(max(rgb[k], 0), 1))
		*at = uint16(math.Round(float64(*at) + (x-float64(*at))/float64(w+1)))
	}
}

// Layout of a block with the voxels behind it: 9x9x9, row z fastest.
const (
	wide       = side + 1
	wideVoxels = wide * wide * wide
)

// corners are the voxels of a block and those that touch it at its far sides.
type corners struct {
	at [wideVoxels]int32 // of each, its number among those of the slab; -1: not known
}

// corners finds the voxels of block i.
func (b *slab) corners(i int, c *corners) {
	var near [8]int32 // the block, and those that touch it
	for n := range near {
		k := b.keys[i]
		k[0], k[1], k[2] = k[0]+int32(n>>2), k[1]+int32(n>>1&1), k[2]+int32(n&1)
		near[n] = -1
		if place, there := b.place[k]; there {
			near[n] = place
		}
	}
	for n := range c.at {
		x, y, z := n/(wide*wide), n/wide%wide, n%wide
		block := near[x/side<<2|y/side<<1|z/side]
		c.at[n] = -1
		if block < 0 {
			continue
		}
		voxel := block*blockVoxels + int32((x%side*side+y%side)*side+z%side)
		if b.voxels.weight[voxel] >= b.least {
			c.at[n] = voxel
		}
	}
}

// crossed lists the blocks that hold both sides of a surface, so that most are not looked at twice.
func (b *slab) crossed() []int {
	found := make([]bool, b.own)
	parallel.For(b.own, func(i int) {
		var c corners
		b.corners(i, &c)
		in, out := false, false
		for _, n := range c.at {
			if n >= 0 {
				behind := b.voxels.distance[n] < 0
				in, out = in || behind, out || !behind
			}
		}
		found[i] = in && out
	})
	var list []int
	for i, yes := range found {
		if yes {
			list = append(list, i)
		}
	}
	return list
}
