package photos

// queue is the list of photos that will be asked for, in order. Each has a number that grows along the list, so that
// numbers compare as times do.
type queue struct {
	views []int // of the numbers from start on
	later []int // for each, the number of the next one of the same view, or Never
	start int   // number of views[0]
	head  int   // number of the first that was not asked for yet
	first []int // by view: its first number at or after head, or Never
	last  []int // by view: its last number, if first is not Never
}

func newQueue(n int) queue {
	q := queue{first: make([]int, n), last: make([]int, n)}
	q.clear()
	return q
}

// clear empties the list.
func (q *queue) clear() {
	q.start, q.head = q.tail(), q.tail()
	q.views, q.later = q.views[:0], q.later[:0]
	for v := range q.first {
		q.first[v] = Never
	}
}

// tail returns the number that the next one will get.
func (q *queue) tail() int { return q.start + len(q.views) }

// add appends views. Those that were asked for are forgotten first, so that the list stays as short as what is ahead.
func (q *queue) add(views []int) {
	done := q.head - q.start
	q.views = append(q.views[:0], q.views[done:]...)
	q.later = append(q.later[:0], q.later[done:]...)
	q.start = q.head
	for _, v := range views {
		if v < 0 || v >= len(q.first) {
			continue
		}
		number := q.tail()
		if q.first[v] == Never {
			q.first[v] = number
		} else {
			q.later[q.last[v]-q.start] = number
		}
		q.last[v] = number
		q.views, q.later = append(q.views, v), append(q.later, Never)
	}
}

// take notes that view was asked for. Only the first of the list is taken off: what is asked for out of turn, because
// steps are repeated, is no use that the list knows of.
func (q *queue) take(view int) {
	if q.head == q.tail() || q.at(q.head) != view {
		return
	}
	q.first[view] = q.later[q.head-q.start]
	q.head++
}

// at returns the view of a number from head to tail.
func (q *queue) at(number int) int { return q.views[number-q.start] }

// Never is a step that does not come.
const Never = int(^uint(0) >> 1)
