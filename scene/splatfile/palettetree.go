package splatfile

import "container/heap"

// paletteTree cuts the space of points into cells by planes across single coordinates. It is where the search for a
// palette begins: one entry for each cell.
type paletteTree struct {
	nodes  []treeNode
	leaves int
}

// treeNode is a plane, or a cell: then left is -1 and right its number, in the order of a walk through the tree.
type treeNode struct {
	axis        int
	split       float32
	left, right int32
}

// treeStarts is how many cells a search for the nearest entry starts from.
const treeStarts = 4

// leaf gives the cell of a point below a node, and into beside, if it is not nil, the planes on the way that are
// nearest to it.
func (t *paletteTree) leaf(node int32, point []float32, beside *[treeStarts - 1]planeBeside) int32 {
	for t.nodes[node].left >= 0 {
		at := &t.nodes[node]
		near, far := at.left, at.right
		if point[at.axis] >= at.split {
			near, far = far, near
		}
		if beside != nil {
			plane := planeBeside{max(at.split-point[at.axis], point[at.axis]-at.split), far}
			for i, other := range beside {
				if plane.distance < other.distance {
					beside[i], plane = plane, other
				}
			}
		}
		node = near
	}
	return t.nodes[node].right
}

// planeBeside is a plane near a point, and the node on its other side.
type planeBeside struct {
	distance float32
	node     int32
}

// cells gives the cell of a point and those beyond the nearest planes: where the way down was least sure.
func (t *paletteTree) cells(point []float32) (out [treeStarts]int32) {
	var beside [treeStarts - 1]planeBeside
	for i := range beside {
		beside[i].distance = inf32
	}
	out[0] = t.leaf(0, point, &beside)
	for i, plane := range beside {
		out[1+i] = t.leaf(plane.node, point, nil)
	}
	return out
}

// treeCell is a cell while the tree grows: points ids[lo:hi].
type treeCell struct {
	node   int32
	lo, hi int
	axis   int
	split  float32
	error  float64 // squared distances of the points to their mean, summed
}

// treeQueue has the cell with the largest error first.
type treeQueue []treeCell

func (q treeQueue) Len() int { return len(q) }
func (q treeQueue) Less(i, j int) bool {
	return q[i].error > q[j].error || q[i].error == q[j].error && q[i].node < q[j].node
}
func (q treeQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *treeQueue) Push(x any)   { *q = append(*q, x.(treeCell)) }
func (q *treeQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// growTree cuts the cell with the largest error at its mean on the axis of its largest variance, until there are k
// cells or each holds equal points.
func growTree(points []float32, stride, k int) *paletteTree {
	n := len(points) / stride
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i)
	}
	t := &paletteTree{nodes: []treeNode{{left: -1}}, leaves: 1}
	g := &treeGrower{points, stride, ids, make([]float64, stride), make([]float64, stride)}
	queue := treeQueue{g.measure(treeCell{hi: n})}
	for t.leaves < k && len(queue) > 0 {
		cell := heap.Pop(&queue).(treeCell)
		middle := g.partition(cell)
		if middle == cell.lo || middle == cell.hi {
			continue // equal points, or equal but for rounding
		}
		left := int32(len(t.nodes))
		t.nodes = append(t.nodes, treeNode{left: -1}, treeNode{left: -1})
		t.nodes[cell.node] = treeNode{cell.axis, cell.split, left, left + 1}
		t.leaves++
		heap.Push(&queue, g.measure(treeCell{node: left, lo: cell.lo, hi: middle}))
		heap.Push(&queue, g.measure(treeCell{node: left + 1, lo: middle, hi: cell.hi}))
	}
	t.number()
	return t
}

// number gives the cells their numbers: neighbours in the tree are neighbours in the palette.
func (t *paletteTree) number() {
	next := int32(0)
	for stack := []int32{0}; len(stack) > 0; {
		node := &t.nodes[stack[len(stack)-1]]
		stack = stack[:len(stack)-1]
		if node.left < 0 {
			node.right = next
			next++
			continue
		}
		stack = append(stack, node.right, node.left)
	}
}

// treeGrower measures and cuts cells.
type treeGrower struct {
	points      []float32
	stride      int
	ids         []int32
	sum, square []float64
}

// measure finds where a cell is to be cut and what it costs not to.
func (g *treeGrower) measure(c treeCell) treeCell {
	clear(g.sum)
	clear(g.square)
	first := g.points[g.stride*int(g.ids[c.lo]):][:g.stride]
	for _, id := range g.ids[c.lo:c.hi] {
		row := g.points[g.stride*int(id):][:g.stride]
		for j, x := range row {
			d := float64(x - first[j])
			g.sum[j] += d
			g.square[j] += d * d
		}
	}
	n, most := float64(c.hi-c.lo), -1.0
	for j := range g.sum {
		spread := g.square[j] - g.sum[j]*g.sum[j]/n
		c.error += max(spread, 0)
		if spread > most {
			most, c.axis, c.split = spread, j, first[j]+float32(g.sum[j]/n)
		}
	}
	return c
}

// partition brings a cell's points below its plane to the front, in their order as the others are, and gives where they
// end.
func (g *treeGrower) partition(c treeCell) int {
	above := make([]int32, 0, c.hi-c.lo)
	at := c.lo
	for _, id := range g.ids[c.lo:c.hi] {
		if g.points[g.stride*int(id)+c.axis] < c.split {
			g.ids[at] = id
			at++
		} else {
			above = append(above, id)
		}
	}
	copy(g.ids[at:], above)
	return at
}
