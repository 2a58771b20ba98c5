package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vksplat/internal/fault"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/vk"
)

// devicePhotos brings the training photos to the device. Each step finds its photo in the device cache, or gets it
// through a ring of staging memory that the host fills while earlier steps run. The device cache keeps the photos that
// are needed soonest; its misses are known ahead and announced to the source.
type devicePhotos struct {
	photoSlots // the device cache
	src        *photos.Share
	order      viewOrder
	last       int // steps to train: nothing is read ahead for those after them

	slotOf  []int    // by view: where it is in the device cache, or -1
	flags   []uint32 // by view, once it was staged: PHOTO_* bits
	outsize []bool   // by view: its photo was found to be larger than the layout has them, and is not kept
	filled  int      // slots with a photo
	ring    []vk.Slice[uint32]
	keepers []*vk.Copier // per frame in flight, from the ring to a slot

	choices  []int32      // what to do with the photos of the steps from done on
	done     int          // steps before it are under way
	planned  []int        // scratch: slots as they will be after the last planned step
	expected []photos.Ask // scratch: what the source will be asked for
	strict   bool
	warn     func(string)
}

// What to do with a step's photo, when it is not the number of the slot to keep it in.
const (
	photoHit  = -1 // it is in the device cache
	photoPass = -2 // it is used once and not kept
)

// newDevicePhotos makes the ring, the target and the device cache that plan has for the steps of e.
func newDevicePhotos(e *setup, cams []scene.Camera, src *photos.Share, cfg *recipe.Config, plan *Plan,
	o TrainerOptions) (*devicePhotos, error) {
	n := len(cams)
	p := &devicePhotos{src: src, order: newViewOrder(cfg.Seed, n, e.world), last: cfg.Iterations,
		photoSlots: photoSlots{dev: e.dev, cams: cams, layout: plan.photos, all: plan.Device.PhotoAll,
			words: e.targetWords()},
		slotOf: slices.Repeat([]int{-1}, n), flags: make([]uint32, n), outsize: make([]bool, n),
		strict: o.Strict, warn: o.Warn}
	if err := p.allocate(plan.Device.PhotoFits, inFlight); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// allocate makes the staging memory of the units in flight, the target and a cache of n photos. What an error leaves is
// close's to free.
func (p *devicePhotos) allocate(n, inFlight int) error {
	for range inFlight {
		c, err := p.dev.NewCopier()
		if err != nil {
			return err
		}
		p.keepers = append(p.keepers, c)
	}
	if err := p.makeRing(inFlight); err != nil {
		return err
	}
	return p.makeSlots(n)
}

func (p *devicePhotos) makeRing(frames int) error {
	_, most := photos.Totals(p.cams)
	for range frames {
		s, err := vk.Make[uint32](p.dev, vk.Upload, int(most/4), "photo staging")
		if err != nil {
			return err
		}
		p.ring = append(p.ring, s)
	}
	return nil
}

// ready finds the photo of a step for a frame whose last unit is done: the view, and where its pixels are.
func (p *devicePhotos) ready(ctx context.Context, frame, step int) (view int, photo stagedPhoto, err error) {
	if p.complete() {
		view = p.order.at(step)
		p.done, p.choices = step+1, nil
		p.src.Expect(step, nil, photos.Never)
		p.freeRing(frame)
		return view, p.cached(view), nil
	}
	p.planTo(step)
	choice := int32(photoPass)
	if step == p.done && len(p.choices) > 0 {
		choice, p.choices = p.choices[0], p.choices[1:]
		p.done++
	}
	var src vk.View
	for {
		view = p.order.at(step)
		if p.slotOf[view] >= 0 {
			return view, p.cached(view), nil
		}
		n, err := p.stage(ctx, frame, view)
		if err == nil {
			src = p.ring[frame].View.Slice(0, n)
			break
		}
		if err = p.without(ctx, view, err); err != nil {
			p.restart(step) // what was decided for this step has not happened
			return 0, stagedPhoto{}, err
		}
	}
	if p.all {
		choice = int32(view) // each has a slot of its size, also one that took the place of a view without pixels
	}
	if choice >= 0 && src.Size() > p.slots[choice].words.Size() {
		choice = photoPass
		if !p.outsize[view] {
			p.outsize[view] = true
			p.restart(step + 1) // the steps from here on were planned with it in its slot
		}
	}
	if choice < 0 {
		return view, p.copied(src), nil
	}
	photo, err = p.keep(frame, view, int(choice), src)
	return view, photo, err
}

// keep has the frame's next submit copy a view's photo to a slot of the device cache.
func (p *devicePhotos) keep(frame, view, slot int, src vk.View) (stagedPhoto, error) {
	s := &p.slots[slot]
	if s.view >= 0 {
		p.slotOf[s.view] = -1
	} else {
		p.filled++
	}
	s.view, s.bytes, p.slotOf[view] = view, src.Size(), slot
	photo := p.cached(view)
	photo.keep, photo.kept = p.keepers[frame], src.Size()
	return photo, photo.keep.Record(s.words.View.Slice(0, src.Size()), src)
}

// undo reverts what ready decided for a step whose photo, of a view, was not submitted; keep is ready's.
func (p *devicePhotos) undo(view, step int, keep *vk.Copier) {
	if slot := p.slotOf[view]; keep != nil && slot >= 0 {
		p.slots[slot].view, p.slotOf[view] = -1, -1
		p.filled--
	}
	p.restart(step)
}

func (p *devicePhotos) complete() bool { return p.all && p.filled == len(p.slots)-p.order.nBad }

// stage copies a photo to the frame's part of the ring and returns its bytes.
func (p *devicePhotos) stage(ctx context.Context, frame, view int) (n int64, err error) {
	m, err := p.src.Photo(ctx, view)
	if err != nil {
		return 0, err
	}
	if err = photos.Check(&p.cams[view], m); err == nil {
		n, p.flags[view] = photos.Stage(p.ring[frame].View.Host(), m, p.layout.Packed)
	}
	p.src.Release(view)
	return n, err
}

// without notes that a view has no pixels because of err; the view after it in the order replaces it from now on. The
// error, if any, ends the run.
func (p *devicePhotos) without(ctx context.Context, view int, err error) error {
	if ctx.Err() != nil || !errors.Is(err, fault.ErrData) || p.strict {
		return err
	}
	left := p.order.drop(view)
	if left < minTrainPhotos {
		return fmt.Errorf("train: %d photos are left that can be decoded, %d are needed: %w", left,
			minTrainPhotos, err)
	}
	if p.warn != nil {
		p.warn(fmt.Sprintf("photo %s cannot be decoded, its steps train on the photo after it: %v", p.cams[view].Name,
			err))
	}
	return nil
}

// minTrainPhotos is how many photos training needs to find depths.
const minTrainPhotos = 3

func (p *devicePhotos) freeRing(frame int) {
	if !p.ring[frame].IsZero() {
		_ = p.dev.Free(p.ring[frame].View)
		p.ring[frame] = vk.Slice[uint32]{}
	}
}

// announce announces to the source the photos of a step and those after it, unless all are cached.
func (p *devicePhotos) announce(step int) {
	if !p.complete() {
		p.planTo(step)
	}
}

// planTo decides what the device cache keeps, up to the end of the epoch after that of step, and announces to the
// source which photos will be asked for.
func (p *devicePhotos) planTo(step int) {
	n, end := p.order.epochSteps(), p.done+len(p.choices)
	if step < p.done || step < end && step%n != 0 {
		return
	}
	if end == 0 || step > p.done {
		p.restart(step)
		end = step
	}
	p.choices = append(make([]int32, 0, 2*n), p.choices...)
	p.expected = p.expected[:0]
	for ; end < max(min((step/n+2)*n, p.last), step+1); end++ {
		c := p.choose(end)
		p.choices = append(p.choices, c)
		if c != photoHit {
			p.expected = append(p.expected, photos.Ask{Step: end, View: p.order.at(end)})
		}
	}
	p.src.Expect(step, p.expected, end)
}

// restart begins the plan at step, from what the device cache holds now.
func (p *devicePhotos) restart(step int) {
	p.done, p.choices, p.planned = step, p.choices[:0], p.planned[:0]
	for _, s := range p.slots {
		p.planned = append(p.planned, s.view)
	}
	p.src.Forget()
}

// choose decides about the photo of one step, with the device cache as it will be then: of the photos there and this
// one, the one that is needed last is not kept.
func (p *devicePhotos) choose(step int) int32 {
	view := p.order.at(step)
	if p.outsize[view] {
		return photoPass
	}
	if p.all {
		if p.planned[view] == view {
			return photoHit
		}
		p.planned[view] = view
		return int32(view)
	}
	worst, latest := -1, p.order.nextUse(view, step)
	for k, v := range p.planned {
		next := photos.Never
		if v == view {
			return photoHit
		} else if v >= 0 {
			next = p.order.nextUse(v, step)
		}
		if next > latest {
			worst, latest = k, next
		}
	}
	if worst < 0 {
		return photoPass
	}
	p.planned[worst] = view
	return int32(worst)
}

// dropCache frees the device cache; the target moves. Nothing may be in flight.
func (p *devicePhotos) dropCache() error {
	err := p.freeSlots()
	p.slotOf = slices.Repeat([]int{-1}, len(p.slotOf))
	p.all, p.filled = false, 0
	p.restart(p.done)
	frames := len(p.ring)
	for _, s := range p.ring {
		err = errors.Join(err, p.dev.Free(s.View))
	}
	p.ring = p.ring[:0]
	return errors.Join(err, p.makeRing(frames), p.makeSlots(0))
}

func (p *devicePhotos) close() error {
	if err := p.dev.WaitIdle(); err != nil {
		return err
	}
	var err error
	for _, c := range p.keepers {
		err = errors.Join(err, c.Close())
	}
	err = errors.Join(err, p.freeSlots())
	for _, s := range p.ring {
		err = errors.Join(err, p.dev.Free(s.View))
	}
	return err
}
