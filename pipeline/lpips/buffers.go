package lpips

import (
	"errors"
	"fmt"

	"vksplat/internal/fault"
	"vksplat/pipeline/failure"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// counts are the numbers of elements of the buffers that pictures are compared in.
type counts struct {
	staged int   // pixels of a picture on their way to the device
	sums   int   // rows of all compared maps
	maps   []int // numbers of each map of a picture
}

// counts says what bands of pictures take.
func (b *bands) counts(layers []metric.LPIPSLayer) counts {
	c := counts{staged: b.staged(), maps: make([]int, len(b.maps))}
	for i := range b.maps {
		c.maps[i] = b.maps[i].values()
		if i > 0 && layers[i-1].Compared {
			c.sums += b.maps[i].height
		}
	}
	return c
}

func (c counts) union(o counts) counts {
	u := counts{staged: max(c.staged, o.staged), sums: max(c.sums, o.sums), maps: make([]int, len(o.maps))}
	for i := range u.maps {
		u.maps[i] = o.maps[i]
		if i < len(c.maps) {
			u.maps[i] = max(u.maps[i], c.maps[i])
		}
	}
	return u
}

func (c counts) hold(o counts) bool {
	if c.staged < o.staged || c.sums < o.sums || len(c.maps) != len(o.maps) {
		return false
	}
	for i, n := range o.maps {
		if c.maps[i] < n {
			return false
		}
	}
	return true
}

// bytes returns the device memory of both pictures' maps and of the pixels on their way there.
func (c counts) bytes() int64 {
	n := 3 * c.staged
	for _, values := range c.maps {
		n += values
	}
	return 2 * 4 * int64(n)
}

func (c counts) largest() int64 {
	n := 3 * c.staged
	for _, values := range c.maps {
		n = max(n, values)
	}
	return 4 * int64(n)
}

// buffers are the memory that pictures of several sizes are compared in, one after the other.
type buffers struct {
	dev    *vk.Device
	counts counts
	pixels int // that a band takes of a picture

	rows         vk.Slice[layout.MapRows] // [maps] of the band
	picture      [2]vk.Slice[[3]float32]  // rows of the pictures, of the band
	maps         [2][]vk.Slice[float32]   // [maps] of each picture
	sums, result vk.Slice[float32]        // [rows of all compared maps], the same on the host
	held         []vk.View                // all of these
}

func allocate[T any](b *buffers, to *vk.Slice[T], kind vk.MemoryKind, n int, name string) (err error) {
	if *to, err = vk.Make[T](b.dev, kind, n, name); err == nil {
		b.held = append(b.held, to.View)
	}
	return err
}

func newBuffers(dev *vk.Device, c counts, pixels int) (*buffers, error) {
	b := &buffers{dev: dev, counts: c, pixels: pixels}
	err := errors.Join(allocate(b, &b.rows, vk.Upload, len(c.maps), "map rows"),
		allocate(b, &b.sums, vk.DeviceLocal, c.sums, "row sums"),
		allocate(b, &b.result, vk.Readback, c.sums, "row sums read back"))
	for k := range b.maps {
		err = errors.Join(err, allocate(b, &b.picture[k], vk.Upload, c.staged, "picture"))
		b.maps[k] = make([]vk.Slice[float32], len(c.maps))
		for i := 0; i < len(c.maps) && err == nil; i++ { // after an error there is no use in asking for more
			err = allocate(b, &b.maps[k][i], vk.DeviceLocal, c.maps[i], "feature maps")
		}
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *buffers) close() (err error) {
	if b == nil {
		return nil
	}
	for _, v := range b.held {
		err = errors.Join(err, b.dev.Free(v))
	}
	return err
}

// sizesOf are sizes of pictures, each once: those of cams that a network makes something of.
func sizesOf(layers []metric.LPIPSLayer, cams []scene.Camera) (sizes [][2]int) {
	least, seen := leastSide(layers), map[[2]int]bool{}
	for i := range cams {
		size := [2]int{cams[i].Width, cams[i].Height}
		if min(size[0], size[1]) >= least && !seen[size] {
			seen[size] = true
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// bandsOf plans bands of the given number of pixels, and of at least a row.
func bandsOf(layers []metric.LPIPSLayer, size [2]int, pixels int) *bands {
	return newBands(layers, size[0], size[1], max(1, min(size[1], pixels/size[0])))
}

// countsOf says what pictures of sizes take, in bands of the given number of pixels.
func countsOf(layers []metric.LPIPSLayer, sizes [][2]int, pixels int) (c counts) {
	for _, size := range sizes {
		c = c.union(bandsOf(layers, size, pixels).counts(layers))
	}
	return c
}

// take takes memory for pictures of sizes, in bands as large as a budget allows, in the place of what there is.
func (l *Scorer) take(sizes [][2]int, budget int64) error {
	if err := l.forget(); err != nil {
		return err
	}
	most := l.dev.Info().Limits.MaxStorageBufferRange
	for pixels := mostPixels; pixels > 0; pixels /= 2 {
		c := countsOf(l.layers, sizes, pixels)
		if c.bytes() > budget || c.largest() > most {
			continue
		}
		b, err := newBuffers(l.dev, c, pixels)
		if err == nil {
			l.Buffers = b
			return nil
		}
		if !failure.IsShortage(err) {
			return err
		}
	}
	var need int64
	var width, height int
	for _, size := range sizes {
		need, width, height = max(need, leastBytes(l.net, size[0], size[1])), max(width, size[0]), max(height, size[1])
	}
	return fault.WithHint(fmt.Errorf("compare pictures by LPIPS: %w: features that %s finds in pictures of "+
		"up to %dx%d pixels do not fit the %s that they may take; %s are enough, weights included",
		failure.ErrTooSmall, l.net, width, height, vk.BytesText(max(budget, 0)), vk.BytesText(need)),
		failure.AnyOf(failure.RaiseMemory(), l.options.Smaller))
}

// Reserve takes the memory for comparing pictures of the sizes of cams before others take it, and leaves them beside
// bytes of the device's. Pictures of other sizes may be compared all the same, if there is room for them then.
func (l *Scorer) Reserve(cams []scene.Camera, beside int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	sizes := sizesOf(l.layers, cams)
	if len(sizes) == 0 || l.weights == nil {
		return nil // Score says what is wrong
	}
	if err := l.forget(); err != nil {
		return err
	}
	left := l.dev.Budget() - l.dev.Stats().InUse - beside
	least := countsOf(l.layers, sizes, 1).bytes()
	return l.take(sizes, min(left, max(l.budget(), least)))
}

// LeastBytes returns the device memory that a network needs at least to compare pictures of the sizes of cams, one row
// of pixels at a time, with its weights; 0 where it makes something of none of them.
func LeastBytes(net string, cams []scene.Camera) int64 {
	layers := metric.LPIPSLayers(net)
	sizes := sizesOf(layers, cams)
	if len(sizes) == 0 {
		return 0
	}
	least := countsOf(layers, sizes, 1).bytes()
	for _, l := range layers {
		least += 4 * int64(l.Numbers())
	}
	return least
}
