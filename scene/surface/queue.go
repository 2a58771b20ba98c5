package surface

// candidate is an edge that may collapse.
type candidate struct {
	cost    float64
	a, b    int32
	version uint32 // sum of theirs
}

type queue []candidate

func (q queue) less(i, j int) bool {
	x, y := &q[i], &q[j]
	if x.cost != y.cost {
		return x.cost < y.cost
	}
	return x.a < y.a || x.a == y.a && (x.b < y.b || x.b == y.b && x.version < y.version)
}

func (q queue) order() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
}

func (q queue) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(q) {
			return
		}
		if child+1 < len(q) && q.less(child+1, child) {
			child++
		}
		if !q.less(child, i) {
			return
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
}

// rise brings the last to its place.
func (q queue) rise() {
	for i := len(q) - 1; i > 0 && q.less(i, (i-1)/2); i = (i - 1) / 2 {
		q[i], q[(i-1)/2] = q[(i-1)/2], q[i]
	}
}

func (q *queue) pop() candidate {
	list := *q
	first, last := list[0], len(list)-1
	list[0] = list[last]
	*q = list[:last]
	q.sink(0)
	return first
}
