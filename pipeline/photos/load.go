package photos

import (
	"fmt"
	"slices"

	"vksplat/scene"
	"vksplat/scene/photo"
)

// loadJob is a photo to load and the memory that it may go to.
type loadJob struct {
	views []int       // what is to be loaded, and other faces of the same panorama that are decoded along with it
	image scene.Image // of a photo that was given up; no pixels: to be allocated
	extra int64       // bytes that loading takes beside the photo
	again bool        // the photo is expected once more later
}

// work loads photos until the cache is closed.
func (c *Cache) work() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed {
		job, ok := c.pick()
		if !ok {
			c.changed.Wait()
			continue
		}
		c.mu.Unlock()
		images, read, errs := c.load(job)
		c.mu.Lock()
		c.finish(job, images, read, errs)
	}
}

// pick chooses the next photo to load and takes the memory for it: one that someone waits for, or else the first
// expected one that is not there, as long as no photo has to go that is needed sooner.
func (c *Cache) pick() (loadJob, bool) {
	for i, v := range c.urgent {
		if c.entries[v].state != absent {
			c.urgent = slices.Delete(c.urgent, i, i+1)
			c.entries[v].urgent = false
			return c.pick()
		}
		if job, ok := c.start(v, -1); ok {
			c.urgent = slices.Delete(c.urgent, i, i+1)
			c.entries[v].urgent = false
			return job, true
		}
	}
	if len(c.urgent) > 0 || c.paused {
		return loadJob{}, false // memory that comes free is theirs
	}
	for c.next = max(c.next, c.queue.head); c.next < c.queue.tail(); c.next++ {
		if v := c.queue.at(c.next); c.entries[v].state == absent {
			return c.start(v, c.next)
		}
	}
	return loadJob{}, false
}

// start takes the memory to load view, whose next use has that number.
func (c *Cache) start(view, use int) (job loadJob, ok bool) {
	onDisk := c.spill != nil && c.spill.has(view)
	job = loadJob{views: []int{view}}
	if !onDisk {
		job.extra = c.costs[view]
	}
	if c.flight > 0 && c.flight+job.extra > c.o.FlightBytes {
		return job, false
	}
	if job.image, ok = c.makeRoom(view, use); !ok {
		return job, false
	}
	first := c.queue.first[view]
	job.again = first != Never && (use < 0 || c.queue.later[first-c.queue.start] != Never)
	c.flight += job.extra
	e := &c.entries[view]
	e.state, e.bytes, e.fresh = loading, c.sizes[view], true
	c.fresh++
	if !onDisk {
		c.takeFaces(&job)
	}
	c.count.PeakBytes, c.count.PeakExtra = max(c.count.PeakBytes, c.held), max(c.count.PeakExtra, c.flight)
	return job, true
}

// takeFaces adds to a job the other faces of the panorama, where there is room for them without giving up what is
// needed sooner. To decode the file takes as long as to make several faces of it, so that six faces made of one
// decoding cost less than half of six decoded each for itself. They do not count as read ahead: most are used much
// later, and that must not hold up the photos that are next.
func (c *Cache) takeFaces(job *loadJob) {
	view := job.views[0]
	for _, v := range c.faces[view] {
		e := &c.entries[v]
		if v == view || e.state != absent || c.queue.first[v] == Never || c.spill != nil && c.spill.has(v) {
			continue
		}
		if _, ok := c.makeRoom(v, c.queue.first[v]); ok {
			e.state, e.bytes = loading, c.sizes[v]
			job.views = append(job.views, v)
		}
	}
}

// makeRoom counts the bytes of view as held, after giving up photos that are needed later than use where that must be.
// The memory of one of the same shape is used again.
func (c *Cache) makeRoom(view, use int) (old scene.Image, ok bool) {
	size := c.sizes[view]
	pixels := c.o.Cameras[view].Width * c.o.Cameras[view].Height
	for {
		if i := slices.IndexFunc(c.spare, func(m scene.Image) bool { return m.Width*m.Height == pixels }); i >= 0 {
			old = c.spare[i]
			c.spare = slices.Delete(c.spare, i, i+1)
			return old, true
		}
		if c.held+size <= c.o.Bytes {
			c.held += size
			return old, true
		}
		if len(c.spare) > 0 {
			c.dropSpare()
			continue
		}
		if use >= 0 && c.fresh >= c.ahead || !c.evict(use) {
			return old, false
		}
	}
}

// dropSpare gives memory back that no photo of the right shape came for.
func (c *Cache) dropSpare() {
	last := len(c.spare) - 1
	c.held -= 4 * int64(words(c.spare[last].Width, c.spare[last].Height))
	c.spare[last] = scene.Image{}
	c.spare = c.spare[:last]
}

// evict gives up the photo that is needed last, if that is later than use.
func (c *Cache) evict(use int) bool {
	best := -1
	for v := range c.entries {
		e := &c.entries[v]
		if e.state == ready && !e.inUse() && c.queue.first[v] > use &&
			(best < 0 || c.queue.first[v] > c.queue.first[best]) {
			best = v
		}
	}
	if best < 0 {
		return false
	}
	c.spare = append(c.spare, c.entries[best].image)
	c.used(&c.entries[best])
	c.entries[best] = entry{}
	c.next = min(c.next, c.queue.first[best])
	c.count.Evicted++
	return true
}

// load reads or decodes the photos of a job. The lock is not held.
func (c *Cache) load(job loadJob) (images []scene.Image, read bool, errs []error) {
	view := job.views[0]
	if job.extra == 0 && c.spill != nil && c.spill.has(view) {
		m, err := c.spill.read(view, &c.o.Cameras[view], job.image)
		if err == nil {
			return []scene.Image{m}, true, []error{nil}
		}
		c.warn(fmt.Sprintf("the image cache cannot be read; photos are decoded again: %v", err))
		c.spill.stop()
	}
	photo.Recycle(job.image) // the decoder finds it there
	job.image = scene.Image{}
	cams := make([]scene.Camera, len(job.views))
	for i, v := range job.views {
		cams[i] = c.o.Cameras[v]
	}
	images, errs = c.o.Decode(cams)
	for i, v := range job.views {
		if errs[i] == nil {
			errs[i] = Check(&cams[i], images[i])
		}
		if errs[i] == nil && c.spill != nil && job.again {
			if err := c.spill.write(v, images[i]); err != nil {
				c.warn(fmt.Sprintf("the image cache cannot be written, photos are decoded again: %v", err))
				c.spill.stop()
			}
		}
	}
	return images, false, errs
}

func (c *Cache) warn(text string) {
	if c.o.Warn != nil {
		c.o.Warn(text)
	}
}

func (c *Cache) finish(job loadJob, images []scene.Image, read bool, errs []error) {
	c.flight -= job.extra
	if !read {
		c.count.Files++
	}
	for i, v := range job.views {
		e := &c.entries[v]
		switch err := errs[i]; {
		case err != nil:
			c.held -= e.bytes
			c.used(e)
			*e = entry{state: failed, err: err, waits: e.waits, urgent: e.urgent}
		case read:
			e.state, e.image = ready, images[i]
			c.count.Read++
		default:
			e.state, e.image = ready, images[i]
			c.count.Decoded++
		}
	}
	c.changed.Broadcast()
}
