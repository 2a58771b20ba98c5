package lpips

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"vksplat/pipeline/failure"
	"vksplat/scene/metric"
	"vksplat/vk"
)

// Options say how pictures are compared.
type Options struct {
	// Normalize takes colours of 0..1 to -1..1, which the networks expect. gsplat does so with AlexNet; with VGG it
	// gives colours of 0..1 as they are, as INRIA's evaluation does.
	Normalize bool
	// maxBytes is the ceiling of the device memory that a comparison takes, weights included; 0: half of what the
	// device's own budget leaves. Scores do not depend on it.
	maxBytes int64
	// Smaller is pipeline.RenderConfig's.
	Smaller string
}

// Scorer compares pictures by the features that an image network finds in them (Zhang et al. 2018). Its methods may be
// called from several goroutines; pictures are compared one after the other.
type Scorer struct {
	dev     *vk.Device
	options Options
	net     string
	layers  []metric.LPIPSLayer
	least   int // smallest side of a picture

	mu       sync.Mutex
	weights  []weights // by layer
	bytes    int64     // that they take
	Buffers  *buffers  // that pictures are compared in; nil: none are taken yet
	prepared *program  // for pictures of the last one's size; nil: none
}

// weights are a layer's buffers on the device.
type weights struct {
	kernels, biases, channels vk.Slice[float32] // kernels [In][Side][Side][Out]
}

// New takes the weights of a network to the device.
func New(dev *vk.Device, w *metric.LPIPSWeights, o Options) (*Scorer, error) {
	l := &Scorer{dev: dev, options: o, net: w.Net, layers: metric.LPIPSLayers(w.Net)}
	if len(l.layers) == 0 || len(w.Kernels) != len(l.layers) || len(w.Biases) != len(l.layers) ||
		len(w.Channels) != len(l.layers) {
		return nil, fmt.Errorf("create LPIPS: no weights of a network called %q", w.Net)
	}
	l.least = leastSide(l.layers)
	for i := range l.layers {
		if err := l.upload(w, i); err != nil {
			return nil, errors.Join(fmt.Errorf("create LPIPS: weights of layer %d: %w", i, err), l.Close())
		}
	}
	return l, nil
}

// upload takes the weights of layer i to the device. Kernels turn, so that the weights of neighbouring channels of the
// output lie side by side.
func (l *Scorer) upload(w *metric.LPIPSWeights, i int) error {
	l.weights = append(l.weights, weights{})
	to, n := &l.weights[i], len(w.Biases[i])
	if len(w.Kernels[i])+n != l.layers[i].Numbers()-len(w.Channels[i]) {
		return fmt.Errorf("%d numbers, not %d", len(w.Kernels[i])+n+len(w.Channels[i]), l.layers[i].Numbers())
	}
	turned := make([]float32, len(w.Kernels[i]))
	for at, v := range w.Kernels[i] {
		terms := len(turned) / n
		turned[at%terms*n+at/terms] = v
	}
	return errors.Join(l.put(&to.kernels, turned, "kernels"), l.put(&to.biases, w.Biases[i], "biases"),
		l.put(&to.channels, w.Channels[i], "channel weights"))
}

// put makes a buffer of numbers on the device; of none it makes nothing.
func (l *Scorer) put(to *vk.Slice[float32], numbers []float32, name string) (err error) {
	if len(numbers) == 0 {
		return nil
	}
	if *to, err = vk.Make[float32](l.dev, vk.DeviceLocal, len(numbers), name); err != nil {
		return err
	}
	l.bytes += to.Size()
	staging, err := vk.Make[float32](l.dev, vk.Upload, len(numbers), name+" staging")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.dev.Free(staging.View)) }()
	copy(vk.Host(staging), numbers)
	r := vk.NewRecorder(l.dev)
	r.Copy(to.View, staging.View)
	return l.dev.RunOnce(r, "load "+name)
}

// Score returns the distance of two pictures [height][width][3], which are 0 apart where they are equal. Equal pictures
// give equal scores, bit for bit, on one device and driver.
func (l *Scorer) Score(x, y []float32, width, height int) (float64, error) {
	if width < l.least || height < l.least {
		return 0, fmt.Errorf("compare pictures by LPIPS: %dx%d pixels are too few for %s, which needs %d "+
			"a side", width, height, l.net, l.least)
	}
	for _, p := range [][]float32{x, y} {
		if len(p) != 3*width*height {
			return 0, fmt.Errorf("compare pictures by LPIPS: %d numbers do not make %dx%d pixels", len(p), width,
				height)
		}
		for i, v := range p {
			if !(math.Abs(float64(v)) <= math.MaxFloat32) {
				return 0, fmt.Errorf("compare pictures by LPIPS: %w: a pixel at (%d, %d) is %g",
					failure.ErrDiverged, i/3%width, i/3/width, v)
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.prepare(width, height); err != nil {
		return 0, err
	}
	if err := l.prepared.run(x, y); err != nil {
		return 0, fmt.Errorf("compare pictures by LPIPS: %w", err)
	}
	score := l.prepared.score()
	if math.IsNaN(score) || math.IsInf(score, 0) {
		return 0, errors.New("compare pictures by LPIPS: the network's numbers overflow: are these weights of this " +
			"network?")
	}
	return score, nil
}

// prepare makes the program for pictures of a size, in bands as large as the memory that was reserved or, where that
// does not hold them, as there is.
func (l *Scorer) prepare(width, height int) error {
	if l.weights == nil {
		return errors.New("compare pictures by LPIPS: it is closed")
	}
	if p := l.prepared; p != nil && p.bands.maps[0].width == width && p.bands.maps[0].height == height {
		return nil
	}
	if err := l.endProgram(); err != nil {
		return err
	}
	size := [2]int{width, height}
	if b := l.Buffers; b == nil || !b.counts.hold(bandsOf(l.layers, size, b.pixels).counts(l.layers)) {
		if err := l.forget(); err != nil {
			return err
		}
		if err := l.take([][2]int{size}, l.budget()); err != nil {
			return err
		}
	}
	p, err := l.newProgram(bandsOf(l.layers, size, l.Buffers.pixels))
	l.prepared = p
	return err
}

// budget is the ceiling of what pictures take, weights aside.
func (l *Scorer) budget() int64 {
	if l.options.maxBytes > 0 {
		return l.options.maxBytes - l.bytes
	}
	return (l.dev.Budget() - l.dev.Stats().InUse) / 2
}

// endProgram ends the program, and leaves the memory.
func (l *Scorer) endProgram() error {
	p := l.prepared
	l.prepared = nil
	if p == nil {
		return nil
	}
	return p.close()
}

// forget ends the program and frees the memory.
func (l *Scorer) forget() error {
	err := l.endProgram()
	b := l.Buffers
	l.Buffers = nil
	return errors.Join(err, b.close())
}

// Close frees the device memory.
func (l *Scorer) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.forget()
	for _, w := range l.weights {
		for _, s := range []vk.Slice[float32]{w.kernels, w.biases, w.channels} {
			err = errors.Join(err, l.dev.Free(s.View))
		}
	}
	l.weights = nil
	return err
}
