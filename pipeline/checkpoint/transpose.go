package checkpoint

import (
	"encoding/binary"
	"runtime"
	"sync"
)

// Chunks are matrices [rows][splats], files are splat-major. These functions turn one into the other; numbers keep
// their bits.

const (
	transposeBlock = 32   // splats whose numbers stay in the cache meanwhile
	transposePart  = 2048 // splats below which a goroutine is not worth its start
)

// interleave writes count splats of width numbers to dst, from width rows of src that are stride numbers apart.
func interleave(dst, src []byte, width, count, stride int) {
	if width == 1 {
		copy(dst[:4*count], src)
		return
	}
	transposeParts(count, func(lo, hi int) {
		for r := range width {
			row := src[4*r*stride:]
			for i := lo; i < hi; i++ {
				binary.LittleEndian.PutUint32(dst[4*(i*width+r):], binary.LittleEndian.Uint32(row[4*i:]))
			}
		}
	})
}

// deinterleave is the way back.
func deinterleave(dst, src []byte, width, count, stride int) {
	if width == 1 {
		copy(dst, src[:4*count])
		return
	}
	transposeParts(count, func(lo, hi int) {
		for r := range width {
			row := dst[4*r*stride:]
			for i := lo; i < hi; i++ {
				binary.LittleEndian.PutUint32(row[4*i:], binary.LittleEndian.Uint32(src[4*(i*width+r):]))
			}
		}
	})
}

// transposeParts calls f for blocks of splats, on all processors.
func transposeParts(count int, f func(lo, hi int)) {
	parts := min(runtime.GOMAXPROCS(0), (count+transposePart-1)/transposePart)
	var wg sync.WaitGroup
	for p := range parts {
		first, end := count*p/parts, count*(p+1)/parts
		wg.Go(func() {
			for lo := first; lo < end; lo += transposeBlock {
				f(lo, min(lo+transposeBlock, end))
			}
		})
	}
	wg.Wait()
}
