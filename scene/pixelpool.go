package scene

import "sync"

// pixelPools keeps the memory of pixels for the next photo, by length: photos of a capture come in few sizes, are large, and where most of them are decoded
// again and again, as much memory as all cores can fill would be garbage before the collector comes to it. What nobody takes for a while is collected.
var pixelPools sync.Map // int to *sync.Pool of *[]uint8

// poolBytes is the smallest length that is kept.
const poolBytes = 256 << 10

// newPixels returns n zero bytes.
func newPixels(n int) []uint8 {
	if pool, ok := pixelPools.Load(n); ok {
		if pix, ok := pool.(*sync.Pool).Get().(*[]uint8); ok {
			clear(*pix)
			return *pix
		}
	}
	return make([]uint8, n)
}

// freePixels takes back what newPixels gave. Nobody may use it any more.
func freePixels(pix []uint8) {
	if len(pix) < poolBytes {
		return
	}
	pool, _ := pixelPools.LoadOrStore(len(pix), &sync.Pool{})
	pool.(*sync.Pool).Put(&pix)
}

// Recycle takes back the pixels of a decoded photo for those that are decoded next. Nobody may use them any more.
func Recycle(img Image) { freePixels(img.Pix) }
