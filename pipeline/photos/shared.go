package photos

import (
	"context"
	"slices"
	"sync"

	"vksplat/scene"
)

// shared hands one source of photos to the devices. What they say that they will ask for comes to the source in the
// order in which steps will ask.
type shared struct {
	src Source

	mu   sync.Mutex
	asks []asks // by device
	list []int  // scratch
}

// asks are what one device will ask for, as far as it has said so: of each of the steps before end that needs the
// source, the view.
type asks struct {
	coming    []Ask
	announced int // number of them announced to the source
	end       int // Never where the device has all photos
}

// drop forgets the first asks. They move in place, so that a step allocates nothing.
func (a *asks) drop(n int) {
	a.coming, a.announced = slices.Delete(a.coming, 0, n), max(a.announced-n, 0)
}

// Ask is the photo that a device gets from the source for a step.
type Ask struct{ Step, View int }

func Shared(src Source, n int) (list []*Share) {
	s := &shared{src: src, asks: make([]asks, n)}
	for i := range n {
		list = append(list, &Share{s, i})
	}
	return list
}

// Share is one device's view of the source.
type Share struct {
	*shared
	rank int
}

func (p *Share) Photo(ctx context.Context, view int) (scene.Image, error) {
	p.took(view)
	return p.src.Photo(ctx, view)
}

// took notes that the device asks for a view. Out of turn, because steps are repeated, it is no ask that was announced.
func (p *Share) took(view int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := &p.asks[p.rank]; len(a.coming) > 0 && a.coming[0].View == view {
		a.drop(1)
	}
}

// Release gives a photo's pixels back, once for every photo.
func (p *Share) Release(view int) {
	if r, ok := p.src.(Releaser); ok {
		r.Release(view)
	}
}

// Expect says that the device, which is at step from, will ask for these photos, and for no others before step end. The
// source learns as much as all devices have announced.
func (p *Share) Expect(from int, list []Ask, end int) {
	e, ok := p.src.(Planner)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	own := &p.asks[p.rank]
	past := 0
	for past < len(own.coming) && own.coming[past].Step < from {
		past++
	}
	own.drop(past)
	own.coming, own.end = append(own.coming, list...), end
	if p.list = p.merge(p.list[:0]); len(p.list) > 0 {
		e.Expect(p.list)
	}
}

// merge appends what the source can be told now, by step and device, and notes that it is.
func (p *shared) merge(list []int) []int {
	end := Never
	for _, a := range p.asks {
		end = min(end, a.end)
	}
	for {
		first := -1
		next := end
		for i, a := range p.asks {
			if a.announced < len(a.coming) && a.coming[a.announced].Step < next {
				first, next = i, a.coming[a.announced].Step
			}
		}
		if first < 0 {
			return list
		}
		a := &p.asks[first]
		list = append(list, a.coming[a.announced].View)
		a.announced++
	}
}

// Forget takes back what this device expected. The source, which forgets everything, is told the others' again with
// what the device expects next.
func (p *Share) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asks[p.rank] = asks{}
	for i := range p.asks {
		p.asks[i].announced = 0
	}
	if e, ok := p.src.(Planner); ok {
		e.Forget()
	}
}
