package pipeline

import (
	"errors"
	"fmt"

	"vksplat/pipeline/failure"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// lpipsCounts are the numbers of elements of the buffers that pictures are compared in.
type lpipsCounts struct {
	staged int   // pixels of a picture on their way to the device
	sums   int   // rows of all compared maps
	maps   []int // numbers of each map of a picture
}

// counts says what bands of pictures take.
func (b *lpipsBands) counts(layers []scene.LPIPSLayer) lpipsCounts {
	c := lpipsCounts{staged: b.staged(), maps: make([]int, len(b.maps))}
	for i := range b.maps {
		c.maps[i] = b.maps[i].values()
		if i > 0 && layers[i-1].Compared {
			c.sums += b.maps[i].height
		}
	}
	return c
}

// union returns what is enough for both.
func (c lpipsCounts) union(o lpipsCounts) lpipsCounts {
	u := lpipsCounts{staged: max(c.staged, o.staged), sums: max(c.sums, o.sums), maps: make([]int, len(o.maps))}
	for i := range u.maps {
		u.maps[i] = o.maps[i]
		if i < len(c.maps) {
			u.maps[i] = max(u.maps[i], c.maps[i])
		}
	}
	return u
}

// hold says whether these are enough for o.
func (c lpipsCounts) hold(o lpipsCounts) bool {
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
func (c lpipsCounts) bytes() int64 {
	n := 3 * c.staged
	for _, values := range c.maps {
		n += values
	}
	return 2 * 4 * int64(n)
}

// largest returns the bytes of the largest buffer.
func (c lpipsCounts) largest() int64 {
	n := 3 * c.staged
	for _, values := range c.maps {
		n = max(n, values)
	}
	return 4 * int64(n)
}

// lpipsBuffers are the memory that pictures of several sizes are compared in, one after the other.
type lpipsBuffers struct {
	dev    *vk.Device
	counts lpipsCounts
	pixels int // that a band takes of a picture

	rows         vk.Slice[layout.MapRows] // [maps] of the band
	picture      [2]vk.Slice[[3]float32]  // rows of the pictures, of the band
	maps         [2][]vk.Slice[float32]   // [maps] of each picture
	sums, result vk.Slice[float32]        // [rows of all compared maps], the same on the host
	held         []vk.View                // all of these
}

// makeLPIPS makes a buffer of these.
func makeLPIPS[T any](b *lpipsBuffers, to *vk.Slice[T], kind vk.MemoryKind, n int, name string) (err error) {
	if *to, err = vk.Make[T](b.dev, kind, n, name); err == nil {
		b.held = append(b.held, to.View)
	}
	return err
}

// newLPIPSBuffers takes memory.
func newLPIPSBuffers(dev *vk.Device, c lpipsCounts, pixels int) (*lpipsBuffers, error) {
	b := &lpipsBuffers{dev: dev, counts: c, pixels: pixels}
	err := errors.Join(makeLPIPS(b, &b.rows, vk.Upload, len(c.maps), "map rows"), makeLPIPS(b, &b.sums, vk.DeviceLocal, c.sums, "row sums"),
		makeLPIPS(b, &b.result, vk.Readback, c.sums, "row sums read back"))
	for k := range b.maps {
		err = errors.Join(err, makeLPIPS(b, &b.picture[k], vk.Upload, c.staged, "picture"))
		b.maps[k] = make([]vk.Slice[float32], len(c.maps))
		for i := 0; i < len(c.maps) && err == nil; i++ { // after an error there is no use in asking for more
			err = makeLPIPS(b, &b.maps[k][i], vk.DeviceLocal, c.maps[i], "feature maps")
		}
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *lpipsBuffers) close() (err error) {
	if b == nil {
		return nil
	}
	for _, v := range b.held {
		err = errors.Join(err, b.dev.Free(v))
	}
	return err
}

// lpipsSizes are sizes of pictures, each once: those of cams that a network makes something of.
func lpipsSizes(layers []scene.LPIPSLayer, cams []scene.Camera) (sizes [][2]int) {
	least, seen := lpipsLeast(layers), map[[2]int]bool{}
	for i := range cams {
		size := [2]int{cams[i].Width, cams[i].Height}
		if min(size[0], size[1]) >= least && !seen[size] {
			seen[size] = true
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// lpipsBandsOf plans bands of so many pixels, and of a row at least.
func lpipsBandsOf(layers []scene.LPIPSLayer, size [2]int, pixels int) *lpipsBands {
	return newLPIPSBands(layers, size[0], size[1], max(1, min(size[1], pixels/size[0])))
}

// lpipsCountsOf says what pictures of sizes take, in bands of so many pixels.
func lpipsCountsOf(layers []scene.LPIPSLayer, sizes [][2]int, pixels int) (c lpipsCounts) {
	for _, size := range sizes {
		c = c.union(lpipsBandsOf(layers, size, pixels).counts(layers))
	}
	return c
}

// take takes memory for pictures of sizes, in bands as large as a budget allows, in the place of what there is.
func (l *LPIPS) take(sizes [][2]int, budget int64) error {
	if err := l.forget(); err != nil {
		return err
	}
	most := l.dev.Info().Limits.MaxStorageBufferRange
	for pixels := lpipsPixels; pixels > 0; pixels /= 2 {
		c := lpipsCountsOf(l.layers, sizes, pixels)
		if c.bytes() > budget || c.largest() > most {
			continue
		}
		b, err := newLPIPSBuffers(l.dev, c, pixels)
		if err == nil {
			l.buffers = b
			return nil
		}
		if !IsShortage(err) {
			return err
		}
	}
	var need int64
	var width, height int
	for _, size := range sizes {
		need, width, height = max(need, LPIPSBytes(l.net, size[0], size[1])), max(width, size[0]), max(height, size[1])
	}
	return failure.Short(fmt.Errorf("pipeline: compare pictures by LPIPS: %w: features that %s finds in pictures of up to %dx%d pixels do not fit the %s that they may take; %s are enough, weights included",
		ErrTooSmall, l.net, width, height, vk.BytesText(max(budget, 0)), vk.BytesText(need)), anyOf("Raise --max-vram (--max-ram where the device uses RAM)", l.options.Smaller))
}

// Reserve takes the memory for comparing pictures of the sizes of cams before others take it, and leaves them beside bytes of the device's. Pictures of other
// sizes may be compared all the same, if there is room for them then.
func (l *LPIPS) Reserve(cams []scene.Camera, beside int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	sizes := lpipsSizes(l.layers, cams)
	if len(sizes) == 0 || l.weights == nil {
		return nil // Score says what is wrong
	}
	if err := l.forget(); err != nil {
		return err
	}
	left := l.dev.Budget() - l.dev.Stats().InUse - beside
	least := lpipsCountsOf(l.layers, sizes, 1).bytes()
	return l.take(sizes, min(left, max(l.budget(), least)))
}

// PlanLPIPS says what drawing n splats takes of the device at least, and refuses, before anything is taken, what leaves no room to compare the pictures
// of cams by a network beside that. Without splats the pictures are there already. smaller is RenderConfig's.
func (d *Device) PlanLPIPS(net string, n, degree int, cams []scene.Camera, smaller string) (beside int64, err error) {
	layers := scene.LPIPSLayers(net)
	sizes := lpipsSizes(layers, cams)
	if len(sizes) == 0 {
		return 0, nil
	}
	var w renderNeeds
	if n > 0 {
		if w, err = d.renderNeeds(n, degree, cams, &parts{}); err != nil {
			return 0, err
		}
	}
	least := lpipsCountsOf(layers, sizes, 1).bytes()
	for _, l := range layers {
		least += 4 * int64(l.Numbers())
	}
	var need int64
	for next := roundMiB(w.device + least); next > need; next = roundMiB(w.device + least + planSlack(need)) {
		need = next // more slack for more memory, as in renderNeeds
	}
	if need <= d.dev.Budget() {
		return w.device, nil
	}
	raise := "--max-vram to " + mib(need)
	if unified(d) && !d.vram {
		raise = "--max-ram to " + mib(smallestPool(need, w.host(), 0, false))
	}
	return 0, failure.Short(fmt.Errorf("pipeline: plan LPIPS: %w: the features that %s finds take %s of the device beside the %s of drawing, there are %s", ErrTooSmall, net,
		vk.BytesText(need-w.device), vk.BytesText(w.device), vk.BytesText(d.dev.Budget())), anyOf("Raise "+raise+" or more", smaller, "leave LPIPS out"))
}
