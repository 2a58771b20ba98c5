package pipeline

// photoQueue is the list of photos that will be asked for, in order. Each has a number that grows along the list, so that numbers compare as times do.
type photoQueue struct {
	views []int // of the numbers from start on
	later []int // for each, the number of the next one of the same view, or never
	start int   // number of views[0]
	head  int   // number of the first that was not asked for yet
	first []int // by view: its first number at or after head, or never
	last  []int // by view: its last number, if first is not never
}

func newPhotoQueue(n int) photoQueue {
	q := photoQueue{first: make([]int, n), last: make([]int, n)}
	q.clear()
	return q
}

// clear empties the list.
func (q *photoQueue) clear() {
	q.start, q.head = q.tail(), q.tail()
	q.views, q.later = q.views[:0], q.later[:0]
	for v := range q.first {
		q.first[v] = never
	}
}

// tail returns the number that the next one will get.
func (q *photoQueue) tail() int { return q.start + len(q.views) }

// add appends views. Those that were asked for are forgotten first, so that the list stays as short as what is ahead.
func (q *photoQueue) add(views []int) {
	done := q.head - q.start
	q.views = append(q.views[:0], q.views[done:]...)
	q.later = append(q.later[:0], q.later[done:]...)
	q.start = q.head
	for _, v := range views {
		if v < 0 || v >= len(q.first) {
			continue
		}
		number := q.tail()
		if q.first[v] == never {
			q.first[v] = number
		} else {
			q.later[q.last[v]-q.start] = number
		}
		q.last[v] = number
		q.views, q.later = append(q.views, v), append(q.later, never)
	}
}

// take notes that view was asked for. Only the first of the list is taken off: what is asked for out of turn, because steps are repeated, is no use that
// the list knows of.
func (q *photoQueue) take(view int) {
	if q.head == q.tail() || q.at(q.head) != view {
		return
	}
	q.first[view] = q.later[q.head-q.start]
	q.head++
}

// at returns the view of a number from head to tail.
func (q *photoQueue) at(number int) int { return q.views[number-q.start] }
