package adjust

import (
	"slices"

	"vksplat/internal/parallel"
)

// system holds the normal equations of a problem. Its nodes are the poses, then the lenses; a node has as many
// variables as it has freedoms: 6 or 0 of a pose, the free parameters of a lens. A pose's are a small rotation about
// the camera's centre, and a translation, both in the world's axes: the derivatives by the pose then follow from those
// by the point. About the centre, as the origin may be a million metres away, where rotations and translations hardly
// differ.
type system struct {
	p     *Problem
	free  [][]int // of each lens: places in Params
	width int     // free parameters of the lens that has most

	rows       []row        // by point
	seen       [][2]float64 // of a row: pixels
	mounts     []int32      // of a row: Observation.Mount
	pointStart []int32      // rows of point i: pointStart[i] to pointStart[i+1]
	poseRows   [][]int32
	byLens     []float64 // of a row: derivatives by lens times those by point, width x 3

	// a pair is a point and a lens that sees it
	pairStart []int32 // of point i
	pairLens  []int32
	lensPairs [][]pair
	z         []float64 // of a pair: the sum of byLens
	own       []float64 // of a pair: J'J by lens, lower triangle, then J'r

	centres    [][3]float64 // of poses
	v, inverse [][6]float64 // of a point: upper triangle of J'J, and of the damped inverse
	pointGrad  [][3]float64

	offset  []int       // of a node's first variable; the last entry is the number of variables
	columns [][]int32   // of a node: nodes b >= a with which it shares a point, ascending
	before  [][]entry   // of a node: blocks of earlier rows in its column
	blocks  [][]float64 // of a node: dims(a) x dims(b) numbers for each column, one after the other
	diag    []float64   // of J'J, by variable
	grad    []float64   // J'r, by variable
	rhs     []float64   // of the reduced system
}

// row is a linearised observation.
type row struct {
	square      [6]float64 // J'J by the point, in the world's axes: upper triangle
	grad        [3]float64 // J'r by the point
	pose, point int32
}

type pair struct{ index, point int32 }

// entry is a block in the column of a node.
type entry struct {
	row int32
	at  int // in blocks[row]
}

func newSystem(p *Problem) *system {
	y := &system{p: p, free: make([][]int, len(p.Lenses))}
	y.sortRows()
	for i, rows := range y.poseRows { // a lens that no row has stays
		if lens := p.Poses[i].Lens; len(rows) > 0 && y.free[lens] == nil {
			y.free[lens] = p.Lenses[lens].free()
			y.width = max(y.width, len(y.free[lens]))
		}
	}
	y.pairUp()
	y.layOut()
	y.byLens, y.z = make([]float64, 3*y.width*len(y.rows)), make([]float64, 3*y.width*len(y.pairLens))
	y.own, y.centres = make([]float64, y.ownSize()*len(y.pairLens)), make([][3]float64, len(p.Poses))
	y.v, y.inverse = make([][6]float64, len(p.Points)), make([][6]float64, len(p.Points))
	y.pointGrad = make([][3]float64, len(p.Points))
	return y
}

// ownSize returns how many numbers of own a pair has.
func (y *system) ownSize() int { return triangle(y.width) + y.width }

// triangle returns how many numbers the lower triangle of a matrix has, row by row.
func triangle(n int) int { return n * (n + 1) / 2 }

// sortRows orders observations by point and lists the rows of each pose.
func (y *system) sortRows() {
	n := len(y.p.Observations)
	y.rows, y.seen, y.mounts = make([]row, n), make([][2]float64, n), make([]int32, n)
	y.pointStart = make([]int32, len(y.p.Points)+1)
	count := make([]int, len(y.p.Poses))
	for i := range n {
		o := &y.p.Observations[i]
		y.pointStart[o.Point+1]++
		count[o.Pose]++
	}
	for i := range y.p.Points {
		y.pointStart[i+1] += y.pointStart[i]
	}
	next := slices.Clone(y.pointStart)
	for i := range n {
		o := &y.p.Observations[i]
		at := next[o.Point]
		next[o.Point]++
		y.rows[at].pose, y.rows[at].point, y.seen[at] = o.Pose, o.Point, [2]float64{o.X, o.Y}
		y.mounts[at] = o.Mount
	}
	y.poseRows = make([][]int32, len(count))
	for i, c := range count {
		y.poseRows[i] = make([]int32, 0, c)
	}
	for i := range y.rows {
		list := &y.poseRows[y.rows[i].pose]
		*list = append(*list, int32(i))
	}
}

// pairUp lists the lenses with free parameters that see each point.
func (y *system) pairUp() {
	y.pairStart = make([]int32, len(y.p.Points)+1)
	y.lensPairs = make([][]pair, len(y.p.Lenses))
	for i := range y.p.Points {
		first := len(y.pairLens)
		for r := y.pointStart[i]; r < y.pointStart[i+1]; r++ {
			lens := int32(y.p.Poses[y.rows[r].pose].Lens)
			if len(y.free[lens]) > 0 && !slices.Contains(y.pairLens[first:], lens) {
				y.pairLens = append(y.pairLens, lens)
			}
		}
		slices.Sort(y.pairLens[first:])
		for k, lens := range y.pairLens[first:] {
			y.lensPairs[lens] = append(y.lensPairs[lens], pair{int32(first + k), int32(i)})
		}
		y.pairStart[i+1] = int32(len(y.pairLens))
	}
}

// layOut numbers the variables and finds which blocks of the reduced system are not zero.
func (y *system) layOut() {
	poses := len(y.p.Poses)
	nodes := poses + len(y.p.Lenses)
	y.offset = make([]int, nodes+1)
	for a := range nodes {
		dims := 6
		switch {
		case a >= poses:
			dims = len(y.free[a-poses])
		case y.p.Poses[a].Fixed || len(y.poseRows[a]) == 0:
			dims = 0
		}
		y.offset[a+1] = y.offset[a] + dims
	}
	y.columns, y.blocks, y.before = make([][]int32, nodes), make([][]float64, nodes), make([][]entry, nodes)
	parallel.Workers(nodes, nodes, func() func(a int) {
		seen := make([]bool, nodes)
		return func(a int) {
			if y.dims(a) == 0 {
				return
			}
			clear(seen)
			seen[a] = true
			y.eachPoint(a, func(point int32) { y.markNodes(point, seen) })
			size := 0
			for b := a; b < nodes; b++ {
				if seen[b] && y.dims(b) > 0 {
					y.columns[a] = append(y.columns[a], int32(b))
					size += y.dims(a) * y.dims(b)
				}
			}
			y.blocks[a] = make([]float64, size)
		}
	})
	for a := range nodes {
		at := 0
		for _, b := range y.columns[a] {
			if int(b) != a {
				y.before[b] = append(y.before[b], entry{int32(a), at})
			}
			at += y.dims(a) * y.dims(int(b))
		}
	}
	n := y.offset[nodes]
	y.diag, y.grad, y.rhs = make([]float64, n), make([]float64, n), make([]float64, n)
}

// dims returns the number of variables of a node.
func (y *system) dims(node int) int { return y.offset[node+1] - y.offset[node] }

// eachPoint calls f for the points that a node sees.
func (y *system) eachPoint(node int, f func(point int32)) {
	if lens := node - len(y.p.Poses); lens >= 0 {
		for _, p := range y.lensPairs[lens] {
			f(p.point)
		}
		return
	}
	for _, r := range y.poseRows[node] {
		f(y.rows[r].point)
	}
}

// markNodes marks the nodes that see a point.
func (y *system) markNodes(point int32, seen []bool) {
	for r := y.pointStart[point]; r < y.pointStart[point+1]; r++ {
		pose := y.rows[r].pose
		seen[pose] = true
		seen[len(y.p.Poses)+y.p.Poses[pose].Lens] = true
	}
}
