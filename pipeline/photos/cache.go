package photos

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"vksplat/internal/fault"
	"vksplat/pipeline/failure"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/vk"
)

// Options say which photos a cache holds and in how much memory.
type Options struct {
	Cameras []scene.Camera // of the photos
	// of views of one file; nil: photo.DecodeViews; called from several goroutines
	Decode func(cams []scene.Camera) ([]scene.Image, []error)
	// what decoding takes beside the results; nil: scene.Camera.DecodeBytes
	DecodeBytes func(c scene.Camera) int64
	Bytes       int64 // ceiling of the decoded photos
	// ceiling of what decoding takes beside the photos; one photo is always decoded
	FlightBytes int64
	Workers     int // goroutines that decode; 0: one per core
	// folder of the disk cache; "": none, photos that were evicted are decoded again
	SpillDir   string
	SpillBytes int64             // ceiling of the disk cache; 0: what all photos take
	Warn       func(text string) // gets once what the user should know; may be nil
}

// LargestPhoto returns what the largest photo takes when it is decoded: the least that Bytes may be.
func (o Options) LargestPhoto() int64 {
	_, largest := Totals(o.Cameras)
	return largest
}

// costs returns what decoding each photo takes beside the result.
func (o Options) costs() []int64 {
	if o.DecodeBytes == nil {
		return photo.DecodeCosts(o.Cameras)
	}
	costs := make([]int64, len(o.Cameras))
	for i, c := range o.Cameras {
		costs[i] = o.DecodeBytes(c)
	}
	return costs
}

// Cache decodes photos ahead of those who ask, and keeps as many as its ceiling holds: those that are needed soonest.
// What is evicted goes to the disk cache once and is read from there afterwards. The pixels never depend on what is
// cached.
type Cache struct {
	o     Options
	wait  sync.WaitGroup // for the workers
	sizes []int64        // by view: bytes of the decoded photo at most
	costs []int64        // by view: bytes that decoding takes beside it
	faces [][]int        // by view: the views of the same file, itself among them; nil where there is no other
	spill *spill         // nil without

	mu      sync.Mutex
	changed *sync.Cond // anything below
	entries []entry
	queue   queue
	next    int   // number in queue from which on photos may have to be loaded
	urgent  []int // views that are waited for and not being loaded
	spare   []scene.Image
	held    int64 // bytes of photos, of those being loaded and of spare
	flight  int64 // bytes of what decoding takes at the moment
	fresh   int   // photos that are being loaded or were not asked for since
	ahead   int   // of them, as many as others may have to go for
	closed  bool
	paused  bool // nothing is read ahead
	count   Stats
}

// Stats count what a cache did.
type Stats struct {
	Asked     int   // photos asked for
	Waited    int   // of them, those that were not there yet
	Decoded   int   // photos decoded; of the faces of a panorama that are decoded together each counts
	Files     int   // files decoded
	Read      int   // photos read from the disk cache
	Evicted   int   // photos given up for others
	PeakBytes int64 // decoded photos at the peak
	PeakExtra int64 // what decoding took beside them at the peak
	DiskBytes int64 // size of the disk cache
}

type state uint8

const (
	absent state = iota
	loading
	ready
	failed
)

type entry struct {
	state  state
	image  scene.Image
	bytes  int64 // counted in held
	pins   int   // callers that have the pixels
	waits  int   // callers that wait for it
	fresh  bool  // counted in fresh
	urgent bool  // in the list of urgent views
	err    error // of failed
}

// inUse reports whether a caller has the pixels or is about to.
func (e *entry) inUse() bool { return e.pins > 0 || e.waits > 0 }

// NewCache starts a cache. Close ends it.
func NewCache(o Options) (*Cache, error) {
	if o.Decode == nil {
		o.Decode = photo.DecodeViews
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	n := len(o.Cameras)
	c := &Cache{o: o, sizes: make([]int64, n), costs: o.costs(), faces: facesOf(o.Cameras), entries: make([]entry, n),
		queue: newQueue(n)}
	c.changed = sync.NewCond(&c.mu)
	var total int64
	for i := range o.Cameras {
		cam := &o.Cameras[i]
		if cam.Width < 1 || cam.Height < 1 {
			return nil, fmt.Errorf("open photo cache: photo %s of %dx%d pixels", cam.Name, cam.Width,
				cam.Height)
		}
		c.sizes[i] = Bytes(cam)
		total += c.sizes[i]
		if c.sizes[i] > o.Bytes {
			return nil, fmt.Errorf("open photo cache: %w: photo %s takes %s, the cache may hold %s",
				failure.ErrTooSmall, cam.Name, vk.BytesText(c.sizes[i]), vk.BytesText(o.Bytes))
		}
	}
	c.ahead = c.readAhead(total)
	if o.SpillDir != "" && total > o.Bytes {
		spill, err := openSpill(o.SpillDir, o.SpillBytes, total, n)
		if err != nil {
			return nil, err
		}
		c.spill = spill
	}
	for range min(o.Workers, n) {
		c.wait.Go(c.work)
	}
	return c, nil
}

// facesOf groups the views that share a file, as the faces of a panorama do.
func facesOf(cams []scene.Camera) [][]int {
	byFile := map[string][]int{}
	for v, c := range cams {
		if c.Photo != "" {
			byFile[c.Path] = append(byFile[c.Path], v)
		}
	}
	faces := make([][]int, len(cams))
	for _, views := range byFile {
		if len(views) > 1 {
			for _, v := range views {
				faces[v] = views
			}
		}
	}
	return faces
}

// readAhead returns how many photos that are read ahead may evict others; total is the size of all.
// Reading far ahead costs hits: what goes for a photo now may be needed sooner than one that is free only after its
// next use. So it is a quarter of the cache; but as many as can be decoded at once, if they leave room for the photo in
// use and the next, because where most photos have to be decoded again the cores are what counts.
func (c *Cache) readAhead(total int64) int {
	n := int64(len(c.sizes))
	if n == 0 {
		return 0
	}
	fits, atOnce := int(c.o.Bytes/max(total/n, 1)), c.o.Workers
	if cost := slices.Max(c.costs); cost > 0 {
		atOnce = min(atOnce, max(1, int(c.o.FlightBytes/cost)))
	}
	return max(1, min(fits/4, 2*c.o.Workers), min(atOnce, fits-2))
}

// Photo returns a photo, which stays until Release is called for it.
func (c *Cache) Photo(ctx context.Context, view int) (scene.Image, error) {
	if view < 0 || view >= len(c.entries) {
		return scene.Image{}, fmt.Errorf("get photo: view %d of %d", view, len(c.entries))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count.Asked++
	c.paused = false
	c.queue.take(view)
	e := &c.entries[view]
	if e.state == failed && errors.Is(e.err, fault.ErrTryAgain) {
		*e = entry{waits: e.waits} // it may go better this time
	}
	e.waits++
	defer func() { e.waits-- }()
	if e.state == absent || e.state == loading {
		c.count.Waited++
		stop := context.AfterFunc(ctx, c.wake)
		defer stop()
	}
	for {
		switch {
		case c.closed:
			return scene.Image{}, errors.New("get photo: the cache is closed")
		case e.state == ready:
			e.pins++
			c.used(e)
			c.changed.Broadcast() // what was asked for may be given up for others now
			return e.image, nil
		case e.state == failed:
			return scene.Image{}, e.err
		case ctx.Err() != nil:
			return scene.Image{}, fmt.Errorf("get photo %s: %w", c.o.Cameras[view].Name, context.Cause(ctx))
		case e.state == absent && !e.urgent:
			e.urgent = true
			c.urgent = append(c.urgent, view)
			c.changed.Broadcast()
		}
		c.changed.Wait()
	}
}

// used notes that a photo was asked for since it was loaded.
func (c *Cache) used(e *entry) {
	if e.fresh {
		e.fresh = false
		c.fresh--
	}
}

// wake wakes all who wait.
func (c *Cache) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed.Broadcast()
}

// Release says that a caller of Photo does not use the pixels any more.
func (c *Cache) Release(view int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := &c.entries[view]; e.pins > 0 {
		e.pins--
		c.changed.Broadcast()
	}
}

// Expect says which photos will be asked for next.
func (c *Cache) Expect(views []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue.add(views)
	c.next = c.queue.head
	c.changed.Broadcast()
}

// Forget takes back what was expected.
func (c *Cache) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
}

// forget is Forget under the lock.
func (c *Cache) forget() {
	c.queue.clear()
	c.next = c.queue.head
	for v := range c.entries {
		c.used(&c.entries[v])
	}
}

// Empty gives back the memory of all photos that are not in use: also of those that are
// being decoded, for which it waits. Reading ahead goes on when the next photo is asked for.
func (c *Cache) Empty() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = true
	for c.paused && slices.ContainsFunc(c.entries, func(e entry) bool { return e.state == loading }) {
		c.changed.Wait()
	}
	c.next = c.queue.head
	for v := range c.entries {
		if e := &c.entries[v]; e.state == ready && !e.inUse() {
			c.held -= e.bytes
			c.used(e)
			*e = entry{}
		}
	}
	for len(c.spare) > 0 {
		c.dropSpare()
	}
}

// Stats returns the counts so far.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.count
	if c.spill != nil {
		s.DiskBytes = c.spill.size()
	}
	return s
}

// Close stops the workers and removes the disk cache.
func (c *Cache) Close() error {
	c.mu.Lock()
	c.closed = true
	c.changed.Broadcast()
	c.mu.Unlock()
	c.wait.Wait()
	c.entries, c.spare = nil, nil
	if c.spill == nil {
		return nil
	}
	spill := c.spill
	c.spill = nil
	return spill.close()
}
