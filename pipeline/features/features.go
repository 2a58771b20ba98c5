package features

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"vksplat/shaders/layout"
	"vksplat/vk"
)

// Options say which keypoints are found; Default has COLMAP's values.
type Options struct {
	Side        int     // of a photo; longer ones are reduced to it; 3200
	Max         int     // keypoints of a photo, the largest ones; 8192
	Octaves     int     // sizes of the photo; 4
	FirstOctave int     // -1: the first one is the doubled photo; 0: the photo as it is
	Peak        float32 // least difference of levels, of 1; 0.02/3
	Edge        float32 // greatest ratio of principal curvatures; 10
	// MaxBytes is the ceiling of the device memory of an octave's levels, 5/6 of what a photo takes; 256 MiB, or half
	// of what the device's budget leaves if that is less. No byte depends on it.
	MaxBytes int64
}

// Default returns COLMAP's options.
func Default() Options {
	return Options{Side: 3200, Max: 8192, Octaves: 4, FirstOctave: -1, Peak: 0.02 / 3, Edge: 10, MaxBytes: 256 << 20}
}

// Keypoint is a place of a photo with a size and a direction.
type Keypoint struct {
	X, Y  float32 // pixels of the photo, whose first one has its centre at 0.5
	Scale float32 // standard deviation of the blur at which it stands out, pixels
	Angle float32 // from x to y, radians
}

// DescriptorBytes is how many bytes describe a keypoint.
const DescriptorBytes = 128

// Set is the keypoints of a photo, the largest first.
type Set struct {
	Points      []Keypoint
	Descriptors []byte // [Points][DescriptorBytes]
}

// Extractor finds keypoints on a device. Its methods may be called from several goroutines: the device processes
// photos one after the other, the host several at a time.
type Extractor struct {
	dev       *vk.Device
	options   Options
	processor bool                       // kernels for processors
	timed     func(passes []vk.PassTime) // of each program, for measurements; nil: nothing is timed
	running   chan struct{}              // one for each lane that is in use

	mu   sync.Mutex
	pool *vk.ScratchPool
	free []*lane
}

// New makes an Extractor, which takes memory when it gets its first photo.
func New(d *vk.Device, o Options) (*Extractor, error) {
	if o.Side < 1 || o.Max < 1 || o.Octaves < 1 || o.FirstOctave < -1 || o.FirstOctave > 0 || !(o.Peak >= 0) ||
		!(o.Edge >= 1) {
		return nil, fmt.Errorf("find features: options %+v are out of range", o)
	}
	o.MaxBytes = min(o.MaxBytes, (d.Budget()-d.Stats().InUse)/2)
	info := d.Info()
	e := &Extractor{dev: d, options: o, processor: info.ShapedForCPU(), pool: d.NewScratchPool(),
		running: make(chan struct{}, lanes)}
	for range lanes {
		e.free = append(e.free, &lane{})
	}
	return e, nil
}

// Close waits for photos that are being processed, and frees the memory.
func (e *Extractor) Close() (err error) {
	for range lanes {
		e.running <- struct{}{}
		defer func() { <-e.running }()
	}
	for _, l := range e.free {
		err = errors.Join(err, l.close(e.dev))
	}
	return errors.Join(err, e.pool.Close())
}

// Extract finds the keypoints of a photo [height][width], black 0 and white 255. The same photo gives the same bytes on
// one device and driver.
func (e *Extractor) Extract(ctx context.Context, width, height int, grey []byte) (Set, error) {
	set, err := e.extract(ctx, width, height, grey)
	if err != nil {
		return Set{}, fmt.Errorf("find features: %w", smallerHint(err))
	}
	return set, nil
}

func (e *Extractor) extract(ctx context.Context, width, height int, grey []byte) (Set, error) {
	if width < 1 || height < 1 || len(grey) != width*height {
		return Set{}, fmt.Errorf("%d pixels are no photo of %dx%d", len(grey), width, height)
	}
	w, h := reduced(width, height, e.options.Side)
	if w != width {
		grey = reduce(grey, width, height, w, h)
	}
	l := e.acquire(w, h)
	defer e.release(l)
	if err := ctx.Err(); err != nil {
		return Set{}, err
	}
	if err := e.fit(l, w, h); err != nil {
		return Set{}, err
	}
	copy(l.photo.Host(), grey)
	var found []candidate
	for _, p := range l.parts {
		if len(found) >= e.options.Max {
			break
		}
		err := e.run(&p.detect)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return Set{}, err
		}
		found = choose(p.detected(found), e.options.Max) // octaves of larger keypoints come first
	}
	var programs []*program
	for _, p := range l.parts {
		if e.share(found, p) {
			programs = append(programs, &p.describe)
		}
	}
	if err := errors.Join(e.run(programs...), ctx.Err()); err != nil {
		return Set{}, err
	}
	return e.set(gather(found), float32(width)/float32(w), float32(height)/float32(h)), nil
}

// candidate is a keypoint without a direction.
type candidate struct {
	octave int
	scale  float32 // of its Keypoint
	layout.SiftPoint
	part  *part // that describes it
	place int   // among the part's points
}

// choose returns the largest candidates, at most so many, once each: neighbours may have moved to one place.
func choose(all []candidate, most int) []candidate {
	all = bySize(all)
	slices.SortFunc(all, func(a, b candidate) int {
		if a.scale != b.scale {
			return cmp.Compare(b.scale, a.scale)
		}
		return cmp.Or(cmp.Compare(a.octave, b.octave), cmp.Compare(a.Y, b.Y), cmp.Compare(a.X, b.X),
			cmp.Compare(a.Nearest, b.Nearest))
	})
	all = slices.CompactFunc(all, func(a, b candidate) bool {
		return a.octave == b.octave && a.X == b.X && a.Y == b.Y && a.Level == b.Level
	})
	return all[:min(len(all), most)]
}

// bySize returns candidates in the order of their sizes alone. Sorting numbers is several times as fast as sorting
// candidates, which is fast where few are out of order.
func bySize(all []candidate) []candidate {
	keys, sorted := make([]uint64, len(all)), make([]candidate, len(all))
	for i := range all {
		keys[i] = uint64(^math.Float32bits(all[i].scale))<<32 | uint64(i)
	}
	slices.Sort(keys)
	for i, key := range keys {
		sorted[i] = all[uint32(key)]
	}
	return sorted
}

// described is a keypoint with what describes it.
type described struct {
	Keypoint
	bytes []byte
}

// set puts keypoints in order, in pixels of a photo that was reduced.
func (e *Extractor) set(all []described, growX, growY float32) Set {
	slices.SortFunc(all, func(a, b described) int { // they are nearly sorted
		if a.Scale != b.Scale {
			return cmp.Compare(b.Scale, a.Scale)
		}
		return cmp.Or(cmp.Compare(a.Y, b.Y), cmp.Compare(a.X, b.X), cmp.Compare(a.Angle, b.Angle),
			bytes.Compare(a.bytes, b.bytes))
	})
	all = all[:min(len(all), e.options.Max)]
	s := Set{Points: make([]Keypoint, len(all)), Descriptors: make([]byte, 0, len(all)*DescriptorBytes)}
	for i, d := range all {
		s.Points[i] = Keypoint{d.X * growX, d.Y * growY, d.Scale * growX, d.Angle}
		s.Descriptors = append(s.Descriptors, d.bytes...)
	}
	return s
}
