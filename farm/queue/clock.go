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
	own    time.Time // this process's time then; it has a monotonic reading
	ahead  time.Time // when it was found to have been moved forward, zero for never
}

// take takes in the server's time, and says whether that went back.
func (c *clock) take(server time.Time) (back bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	own := time.Now()
	if !c.own.IsZero() {
		moved := server.Sub(c.server) - own.Sub(c.own)
		if moved > clockJump {
			c.ahead = own
		}
		back = moved < -clockJump
	}
	c.server, c.own = server, own
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
