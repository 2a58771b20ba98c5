package vk

// PassTime is the device time of one op of a program.
type PassTime struct {
	Name        string
	Nanoseconds int64
}

// Timings appends the device time of every op of the last submit to dst, in order, and returns it. Ops between which no
// barrier stands may overlap; the time of each is then from the end of the one before it to its own, and those of one
// name have equal shares of the time that they take together. Nothing is appended when the program is not done, or has
// no timestamps.
func (p *Program) Timings(dst []PassTime) []PassTime {
	if p.last == 0 || p.queries == 0 || len(p.names) == 0 {
		return dst
	}
	if done, err := p.dev.Done(p.last); err != nil || !done {
		return dst
	}
	if r := p.dev.shim.timestamps(p.queries, p.ticks); r != success {
		return dst
	}
	l := &p.dev.info.Limits
	mask := ^uint64(0) >> (64 - min(l.TimestampBits, 64))
	for i, name := range p.names {
		q := p.start[i]
		ticks := (p.ticks[q+1] - p.ticks[q]) & mask
		dst = append(dst, PassTime{name, int64(float64(ticks) * l.TimestampPeriod / float64(p.timed[i]))})
	}
	return dst
}

// SplitPoints returns the ops after which a program with these timings should be split (BuildOptions.SplitAfter) so
// that no part takes more than limit nanoseconds, as far as that is possible: a single op above limit stays whole. A
// list that would have more parts than one submit takes is split less.
func SplitPoints(t []PassTime, limit int64) (after []int) {
	for after = splitPoints(t, limit); len(after) >= maxBatches; after = splitPoints(t, limit) {
		limit = max(1, 2*limit)
	}
	return after
}

func splitPoints(t []PassTime, limit int64) (after []int) {
	var sum int64
	for i, x := range t {
		if sum > 0 && sum+x.Nanoseconds > limit {
			after = append(after, i-1)
			sum = 0
		}
		sum += x.Nanoseconds
	}
	return after
}
