package queue

import (
	"sync"
	"time"
)

// clockJump is by how much the server's clock may differ from what this process's lets expect before it counts as moved by hand, or by whoever sets it.
const clockJump = 2 * time.Second

// clock is what a process knows of the server's, which stamps entries: the ages of these are wrong by what it was moved since.
type clock struct {
	lock   sync.Mutex
	server time.Time // when it was looked at last
	before time.Time // this process's time when that was asked; it has a monotonic reading
	after  time.Time // and when the answer was there
	ahead  time.Time // when it was found to have been moved forward, zero for never
}

// take takes in the server's time, which it looked at between two of this process's, and says whether that went back. An answer may be long on its way: the clock was
// moved only if no moment of either round trip explains what it shows.
func (c *clock) take(server, before, after time.Time) (back bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if !c.server.IsZero() {
		passed := server.Sub(c.server)
		if passed-after.Sub(c.before) > clockJump {
			c.ahead = after
		}
		back = passed-before.Sub(c.after) < -clockJump
	}
	c.server, c.before, c.after = server, before, after
	return back
}

// age is how old something stamped by the server is at most: where its clock was moved forward, nobody knows how long before that it was stamped.
func (c *clock) age(now, stamp time.Time) time.Duration {
	c.lock.Lock()
	defer c.lock.Unlock()
	age := now.Sub(stamp)
	if !c.ahead.IsZero() {
		age = min(age, time.Since(c.ahead))
	}
	return age
}
