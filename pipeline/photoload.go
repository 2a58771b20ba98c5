package pipeline

import (
	"fmt"
	"slices"

	"vksplat/scene"
)

// photoJob is a photo to load and the memory that it may go to.
type photoJob struct {
	view  int
	image scene.Image // of a photo that was given up; no pixels: to be allocated
	extra int64       // bytes that loading takes beside the photo
	again bool        // the photo is expected once more later
}

// work loads photos until the cache is closed.
func (c *PhotoCache) work() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed {
		job, ok := c.pick()
		if !ok {
			c.changed.Wait()
			continue
		}
		c.mu.Unlock()
		image, read, err := c.load(job)
		c.mu.Lock()
		c.finish(job, image, read, err)
	}
}

// pick chooses the next photo to load and takes the memory for it: one that someone waits for, or else the first expected one that is not there, as long
// as no photo has to go that is needed sooner.
func (c *PhotoCache) pick() (photoJob, bool) {
	for i, v := range c.urgent {
		if c.entries[v].state != photoAbsent {
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
		return photoJob{}, false // memory that comes free is theirs
	}
	for c.next = max(c.next, c.queue.head); c.next < c.queue.tail(); c.next++ {
		if v := c.queue.at(c.next); c.entries[v].state == photoAbsent {
			return c.start(v, c.next)
		}
	}
	return photoJob{}, false
}

// start takes the memory to load view, whose next use has that number.
func (c *PhotoCache) start(view, use int) (job photoJob, ok bool) {
	onDisk := c.spill != nil && c.spill.has(view)
	job = photoJob{view: view}
	if !onDisk {
		job.extra = c.costs[view]
	}
	if c.flight > 0 && c.flight+job.extra > c.o.FlightBytes {
		return job, false
	}
	if !c.makeRoom(view, use, &job) {
		return job, false
	}
	first := c.queue.first[view]
	job.again = first != never && (use < 0 || c.queue.later[first-c.queue.start] != never)
	c.flight += job.extra
	e := &c.entries[view]
	e.state, e.bytes, e.fresh = photoLoading, c.sizes[view], true
	c.fresh++
	c.count.PeakBytes, c.count.PeakExtra = max(c.count.PeakBytes, c.held), max(c.count.PeakExtra, c.flight)
	return job, true
}

// makeRoom counts the bytes of view as held, after giving up photos that are needed later than use where that must be. The memory of one of the same
// shape is used again.
func (c *PhotoCache) makeRoom(view, use int, job *photoJob) bool {
	size := c.sizes[view]
	pixels := c.o.Cameras[view].Width * c.o.Cameras[view].Height
	for {
		if i := slices.IndexFunc(c.spare, func(m scene.Image) bool { return m.Width*m.Height == pixels }); i >= 0 {
			job.image = c.spare[i]
			c.spare = slices.Delete(c.spare, i, i+1)
			return true
		}
		if c.held+size <= c.o.Bytes {
			c.held += size
			return true
		}
		if len(c.spare) > 0 {
			c.dropSpare()
			continue
		}
		if use >= 0 && c.fresh >= c.ahead || !c.evict(use) {
			return false
		}
	}
}

// dropSpare gives memory back that no photo of the right shape came for.
func (c *PhotoCache) dropSpare() {
	last := len(c.spare) - 1
	c.held -= 4 * int64(photoWords(c.spare[last].Width, c.spare[last].Height))
	c.spare[last] = scene.Image{}
	c.spare = c.spare[:last]
}

// evict gives up the photo that is needed last, if that is later than use.
func (c *PhotoCache) evict(use int) bool {
	best := -1
	for v := range c.entries {
		e := &c.entries[v]
		if e.state == photoReady && !e.inUse() && c.queue.first[v] > use && (best < 0 || c.queue.first[v] > c.queue.first[best]) {
			best = v
		}
	}
	if best < 0 {
		return false
	}
	c.spare = append(c.spare, c.entries[best].image)
	c.used(&c.entries[best])
	c.entries[best] = photoEntry{}
	c.next = min(c.next, c.queue.first[best])
	c.count.Evicted++
	return true
}

// load reads or decodes a photo. The lock is not held.
func (c *PhotoCache) load(job photoJob) (m scene.Image, read bool, err error) {
	cam := &c.o.Cameras[job.view]
	if job.extra == 0 && c.spill != nil && c.spill.has(job.view) {
		if m, err = c.spill.read(job.view, cam, job.image); err == nil {
			return m, true, nil
		}
		c.warn(fmt.Sprintf("the image cache cannot be read, photos are decoded again: %v", err))
		c.spill.stop()
	}
	job.image = scene.Image{} // decoding brings its own memory
	if m, err = c.o.Decode(*cam); err != nil {
		return m, false, err
	}
	if err = checkPhoto(cam, m); err != nil {
		return m, false, err
	}
	if c.spill != nil && job.again {
		if err := c.spill.write(job.view, m); err != nil {
			c.warn(fmt.Sprintf("the image cache cannot be written, photos are decoded again: %v", err))
			c.spill.stop()
		}
	}
	return m, false, nil
}

// warn tells the user.
func (c *PhotoCache) warn(text string) {
	if c.o.Warn != nil {
		c.o.Warn(text)
	}
}

// finish takes in a photo that was loaded.
func (c *PhotoCache) finish(job photoJob, image scene.Image, read bool, err error) {
	e := &c.entries[job.view]
	c.flight -= job.extra
	if err != nil {
		c.held -= e.bytes
		c.used(e)
		*e = photoEntry{state: photoFailed, err: err, waits: e.waits, urgent: e.urgent}
	} else {
		e.state, e.image = photoReady, image
		if read {
			c.count.Read++
		} else {
			c.count.Decoded++
		}
	}
	c.changed.Broadcast()
}
