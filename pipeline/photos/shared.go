package photos

import (
	"context"
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
		a.coming, a.announced = a.coming[1:], max(a.announced-1, 0)
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
	for len(own.coming) > 0 && own.coming[0].Step < from {
		own.coming, own.announced = own.coming[1:], max(own.announced-1, 0)
	}
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
