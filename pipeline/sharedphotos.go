package pipeline

import (
	"context"
	"sync"

	"vksplat/scene"
)

// sharedPhotos hands one source of photos to several devices. What they say that they will ask for comes to the source in the order in which steps will.
type sharedPhotos struct {
	src Photos

	mu      sync.Mutex
	waiting [][]int // by device, what it will ask for and the source does not know yet
}

// shareSource returns a source for each of n devices.
func shareSource(src Photos, n int) []Photos {
	if n == 1 {
		return []Photos{src}
	}
	s := &sharedPhotos{src: src, waiting: make([][]int, n)}
	list := make([]Photos, n)
	for i := range list {
		list[i] = &photoShare{s, i}
	}
	return list
}

// photoShare is what one device has of the source.
type photoShare struct {
	*sharedPhotos
	self int
}

// Photo returns the photo of a view.
func (p *photoShare) Photo(ctx context.Context, view int) (scene.Image, error) {
	return p.src.Photo(ctx, view)
}

// Release gives a photo's pixels back.
func (p *photoShare) Release(view int) {
	if r, ok := p.src.(photoReleaser); ok {
		r.Release(view)
	}
}

// Expect says that the device will ask for these views. The source is told as far as all devices have said so.
func (p *photoShare) Expect(views []int) {
	e, ok := p.src.(photoPlanner)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[p.self] = append(p.waiting[p.self], views...)
	n := len(p.waiting[0])
	for _, w := range p.waiting {
		n = min(n, len(w))
	}
	var list []int
	for k := range n {
		for _, w := range p.waiting {
			list = append(list, w[k])
		}
	}
	for i, w := range p.waiting {
		p.waiting[i] = w[n:]
	}
	if len(list) > 0 {
		e.Expect(list)
	}
}

// Forget takes back what this device expected; what the others did is read when they ask.
func (p *photoShare) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[p.self] = nil
	if e, ok := p.src.(photoPlanner); ok {
		e.Forget()
	}
}
