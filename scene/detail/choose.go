package detail

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/splatfile"
)

// Model is a streamed model that is drawn leaf by leaf. A part is a run of splats: a leaf in one of its levels, or all
// that is always drawn.
type Model struct {
	*splatfile.Leaves
	frame  scene.Frame // in which it is drawn
	origin [3]float64  // that was subtracted from its coordinates
	page   int         // splats of which devices keep none or all: a part counts for whole ones
	leaves []leaf
	parts  []part
	sizes  []int
	*store
}

type part struct {
	folder   int
	first, n int
}

// leaf is a box in the model's own coordinates, and what there is of it from its finest level to its coarsest. Levels
// that have no splats in it are left out.
type leaf struct {
	low, high [3]float64
	levels    []level
}

type level struct {
	part    int
	n       int
	spacing float64 // about, between neighbouring splats on a surface as large as the box
}

// finePixels is how far apart on a picture neighbouring splats of a level may be: where they are nearer, the level
// shows all that there is to see. Trained splats are about as large as they are apart.
const finePixels = 1.0

// Open opens a streamed model. Use makes it ready.
func Open(file string) (*Model, error) {
	all, err := splatfile.OpenLeaves(file)
	if err != nil {
		return nil, err
	}
	m := &Model{Leaves: all}
	if all.Always >= 0 {
		m.leaves = append(m.leaves, leaf{levels: []level{m.level(splatfile.LeafRun{Folder: all.Always,
			N: all.Folders[all.Always].N}, 0)}})
	}
	for _, l := range all.List {
		m.leaves = append(m.leaves, m.leaf(l))
	}
	return m, nil
}

func (m *Model) leaf(from splatfile.Leaf) leaf {
	l := leaf{levels: make([]level, 0, len(from.Runs))}
	var sides [3]float64
	for k := range 3 {
		l.low[k], l.high[k] = float64(from.Low[k]), float64(from.High[k])
		sides[k] = l.high[k] - l.low[k]
	}
	slices.Sort(sides[:])
	for _, run := range from.Runs {
		l.levels = append(l.levels, m.level(run, sides[1]*sides[2]))
	}
	return l
}

// level adds a part, whose splats cover about an area.
func (m *Model) level(r splatfile.LeafRun, area float64) level {
	m.parts, m.sizes = append(m.parts, part{r.Folder, r.First, r.N}), append(m.sizes, r.N)
	return level{len(m.parts) - 1, r.N, math.Sqrt(area / float64(r.N))}
}

func (m *Model) Degree() int { return m.Info.Degree }

// Sizes returns the number of splats of each part.
func (m *Model) Sizes() []int { return m.sizes }

// Corners returns splats of no size at the corners of the boxes that the model is in, to tell where it is without
// reading it, in the model's own coordinates.
func (m *Model) Corners() *scene.Splats {
	s := scene.NewSplats(8*len(m.List), 0)
	for i, l := range m.List {
		for k := range 24 {
			corner, axis := k/3, k%3
			s.Means[24*i+k] = [2][3]float32{l.Low, l.High}[corner>>axis&1][axis]
		}
	}
	return s
}

type shown struct {
	leaf  int
	level int
	focal float64 // pixels that a unit of length there takes
}

// Choose returns the parts that a picture shows, in the order of the tree, with room for most splats at most. Of each
// leaf that may be in it that is the coarsest level whose splats are no farther apart than finePixels, and where these
// are too many, of the leaves where it is least to be seen a coarser one. Splats of a leaf that is just outside may
// reach into the picture, so that those leaves are there in their coarsest level. Nothing but the camera and most
// decides about it.
func (m *Model) Choose(c *scene.Camera, most int) ([]int, error) {
	v := newViewed(m.frame.ToCapture(*c, m.origin))
	list, n := m.inView(v)
	if n > most {
		n = m.coarsen(list, n, most)
	}
	if n > most {
		return nil, fault.Usagef(fmt.Sprintf("raise %s to %d or more, and %s (%s where the device uses RAM) if there "+
			"is no room for these; or make more levels: %s", fault.Setting("max-splats"), n, fault.Setting("max-vram"),
			fault.Setting("max-ram"), fault.Command("convert --lod N")),
			"%s: the coarsest level in view needs room for %d splats, but at most %d may be drawn",
			fault.Named("max-splats"), n, most)
	}
	parts := make([]int, 0, len(list))
	for _, s := range list {
		parts = append(parts, m.leaves[s.leaf].levels[s.level].part)
	}
	return parts, nil
}

// always reports whether a leaf is what is always drawn, which has no box.
func (m *Model) always(leaf int) bool { return leaf == 0 && m.Always >= 0 }

// whole is what a part of n splats counts for.
func (m *Model) whole(n int) int { return (n + m.page - 1) / m.page * m.page }

// inView lists the leaves that a picture shows, each in the level that suits it, and how many splats these are.
func (m *Model) inView(v *viewed) (list []shown, n int) {
	for i := range m.leaves {
		l := &m.leaves[i]
		s := shown{leaf: i, focal: v.perUnit(l)}
		if !m.always(i) {
			far := v.outside(l, 1)
			if far && v.outside(l, reach) {
				continue
			}
			for s.level+1 < len(l.levels) && (far || l.levels[s.level+1].spacing*s.focal <= finePixels) {
				s.level++
			}
		}
		list, n = append(list, s), n+m.whole(l.levels[s.level].n)
	}
	return list, n
}

// coarsen takes coarser levels, the least visible ones first, until n splats are most, and returns how many they are.
func (m *Model) coarsen(list []shown, n, most int) int {
	type step struct {
		at, level int
		pixels    float64
	}
	var steps []step
	for at, s := range list {
		for k := s.level + 1; k < len(m.leaves[s.leaf].levels); k++ {
			steps = append(steps, step{at, k, m.leaves[s.leaf].levels[k].spacing * s.focal})
		}
	}
	slices.SortFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.pixels, b.pixels), cmp.Compare(a.at, b.at), cmp.Compare(a.level, b.level))
	})
	for _, t := range steps {
		if n <= most {
			break
		}
		s := &list[t.at]
		if t.level <= s.level {
			continue // a level may have more splats than a finer one
		}
		levels := m.leaves[s.leaf].levels
		n += m.whole(levels[t.level].n) - m.whole(levels[s.level].n)
		s.level = t.level
	}
	return n
}

// viewed is a camera in the model's own coordinates.
type viewed struct {
	scene.Camera
	centre [3]float64
	focal  float64
	planes [][3]float64 // normals of planes through the centre, in the camera's axes: inside is where none is below 0
}

func newViewed(c scene.Camera) *viewed {
	v := &viewed{Camera: c, centre: c.Center(), focal: max(c.Fx, c.Fy), planes: [][3]float64{{0, 0, 1}}}
	if c.Model != scene.Fisheye {
		v.planes = append(v.planes, [3]float64{c.Fx, 0, c.Cx}, [3]float64{-c.Fx, 0, float64(c.Width) - c.Cx},
			[3]float64{0, c.Fy, c.Cy}, [3]float64{0, -c.Fy, float64(c.Height) - c.Cy})
	}
	return v
}

// perUnit is how many pixels a unit of length takes where a leaf is nearest.
func (v *viewed) perUnit(l *leaf) float64 {
	sum := 0.0
	for k, x := range v.centre {
		d := max(l.low[k]-x, x-l.high[k], 0)
		sum += d * d
	}
	return v.focal / math.Sqrt(sum) // infinite within
}

// reach is by how much a box is larger, from its middle, that holds all that is seen of its splats: a box is around
// splats of one standard deviation, which is no more than half of it, and a splat is seen up to sqrt(2 ln 255) of them.
const reach = 3.34

// outside reports whether a leaf's box, scaled by a factor, is outside the picture.
func (v *viewed) outside(l *leaf, times float64) bool {
	for _, n := range v.planes {
		// the corner that is farthest along the normal, which is turned to the model's axes
		most := 0.0
		for k := range 3 {
			world := n[0]*v.R[k] + n[1]*v.R[3+k] + n[2]*v.R[6+k]
			middle, half := (l.low[k]+l.high[k])/2, (l.high[k]-l.low[k])/2*times
			most += world*(middle-v.centre[k]) + math.Abs(world)*half
		}
		if most < 0 {
			return true
		}
	}
	return false
}
