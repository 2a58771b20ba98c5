package vk

// PassTime is the device time of one op of a program.
type PassTime struct {
	Name        string
	Nanoseconds int64
	Beside      bool // timed together with the op before, beside which it may have run: no barrier stands between
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
		dst = append(dst, PassTime{Name: name, Nanoseconds: l.nanoseconds(ticks) / int64(p.timed[i]),
			Beside: i > 0 && q == p.start[i-1]})
	}
	return dst
}

// nanoseconds converts ticks of the device's clock.
func (l *Limits) nanoseconds(ticks uint64) int64 { return int64(float64(ticks) * l.TimestampPeriod) }

// SetTimed decides whether the copier takes the time of what it records from now on, see Took. It has no effect where
// the device has no timestamps.
func (c *Copier) SetTimed(timed bool) error {
	if timed && c.queries == 0 && c.pool != 0 && c.dev.info.Limits.TimestampBits > 0 {
		var r Result
		if c.queries, r = createQueryPool(c.dev.h, 2); r < 0 {
			return c.dev.check("vkCreateQueryPool", "copier", r)
		}
	}
	c.timed = timed && c.queries != 0
	return nil
}

// Took returns the device time of the last copy. ok is false when it is not done, or was recorded without timestamps.
func (c *Copier) Took() (nanoseconds int64, ok bool) {
	if c.last == 0 || !c.clocked {
		return 0, false
	}
	if done, err := c.dev.Done(c.last); err != nil || !done {
		return 0, false
	}
	if r := c.dev.shim.timestamps(c.queries, c.ticks[:]); r != success {
		return 0, false
	}
	l := &c.dev.info.Limits
	return l.nanoseconds((c.ticks[1] - c.ticks[0]) & (^uint64(0) >> (64 - min(l.TimestampBits, 64)))), true
}

// recordTimed is the shim's recordCopy between timestamps.
func (c *Copier) recordTimed(src, dst uint64, srcOff, dstOff, size int64) Result {
	cb, shim := c.cbs[0], c.dev.shim
	if r := beginCommands(cb); r < 0 {
		return r
	}
	cmdResetQueries(cb, c.queries, len(c.ticks))
	shim.cmdBarrier(cb)
	cmdTimestamp(cb, c.queries, 0)
	shim.cmdCopy(cb, src, dst, srcOff, dstOff, size)
	cmdTimestamp(cb, c.queries, 1)
	shim.cmdHostBarrier(cb)
	return endCommands(cb)
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
