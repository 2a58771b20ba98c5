package pixelpool

import (
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
)

// pixelPool keeps the memory of pixels and files for the next photo, by length: photos of a capture come in few sizes,
// are large, and where most of them are decoded again and again, as much memory as all cores can fill would be garbage
// before the collector comes to it. What is not taken for a while is released.
//
// It is no sync.Pool, which keeps a list for every core: on a machine of 64 cores one that decodes finds its own list
// empty and allocates, while others hold photos that were given back.
type pixelPool struct {
	mu      sync.Mutex
	free    map[int][]pooled
	cycle   int  // collections seen
	watched bool // the next collection will be seen
}

// pooled is unused memory.
type pooled struct {
	pix   []uint8
	cycle int // when it was given back
}

var pixels = pixelPool{free: map[int][]pooled{}}

// PoolBytes is the smallest length that is kept.
const PoolBytes = 256 << 10

// maxFile is the largest file read into recycled memory, in bytes: no photo is larger.
const maxFile = 1 << 28

// take returns n bytes, of whatever content if old.
func (p *pixelPool) take(n int) (pix []uint8, old bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.free[n]
	last := len(list) - 1
	if last < 0 {
		return make([]uint8, n), false
	}
	pix = list[last].pix
	list[last] = pooled{}
	p.free[n] = list[:last]
	return pix, true
}

// put takes back memory.
func (p *pixelPool) put(pix []uint8) {
	if len(pix) < PoolBytes {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free[len(pix)] = append(p.free[len(pix)], pooled{pix, p.cycle})
	p.watch()
}

// watch has collected called after the next collection.
func (p *pixelPool) watch() {
	if !p.watched {
		p.watched = true
		runtime.AddCleanup(new([64]byte), func(p *pixelPool) { p.collected() }, p) // of what is garbage from the start
	}
}

// collected releases what was not taken since the collection before the last.
func (p *pixelPool) collected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cycle++
	p.watched = false
	for n, list := range p.free {
		stale := 0
		for stale < len(list) && list[stale].cycle < p.cycle-1 { // given back in this order, and taken from the end
			stale++
		}
		if kept := append([]pooled(nil), list[stale:]...); len(kept) > 0 {
			p.free[n] = kept
			p.watch()
		} else {
			delete(p.free, n)
		}
	}
}

func New(n int) []uint8 {
	pix, old := pixels.take(n)
	if old {
		clear(pix)
	}
	return pix
}

// Free takes back what New gave. Nobody may use it any more.
func Free(pix []uint8) { pixels.put(pix) }

// ReadFile is os.ReadFile into memory that FreeFile takes back.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil || info.Size() < PoolBytes || info.Size() > maxFile {
		return os.ReadFile(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	size := int(info.Size())
	// more than the file, so that files of about one size share it
	room, _ := pixels.take((size + PoolBytes) / PoolBytes * PoolBytes)
	n, err := io.ReadFull(f, room)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return room[:n], nil
	case err == nil: // it has grown since
		data, err := os.ReadFile(path)
		FreeFile(room)
		return data, err
	}
	FreeFile(room)
	return nil, err
}

// FreeFile takes back what ReadFile gave.
func FreeFile(data []byte) {
	if whole := data[:cap(data)]; len(whole)%PoolBytes == 0 {
		pixels.put(whole)
	}
}
