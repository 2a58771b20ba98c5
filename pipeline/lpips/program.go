package lpips

import (
	"errors"

	"vksplat/scene/metric"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// program compares pictures of one size, band after band. Maps are no scratch buffers: rows outlive the band that made
// them.
type program struct {
	dev    *vk.Device
	layers []metric.LPIPSLayer
	bands  *bands

	rows    vk.Slice[layout.MapRows] // [maps] of the band
	picture [2]vk.Slice[[3]float32]  // rows of the pictures, of the band
	maps    [2][]vk.Slice[float32]   // [maps] of each picture
	sums    vk.Slice[float32]        // [rows of all compared maps]
	result  vk.Slice[float32]        // the same on the host
	pool    *vk.ScratchPool
	program *vk.Program
}

// newProgram records the passes, over as much of the buffers as bands need.
func (l *Scorer) newProgram(b *bands) (p *program, err error) {
	from, n := l.Buffers, b.counts(l.layers)
	p = &program{dev: l.dev, layers: l.layers, bands: b, rows: from.rows, sums: from.sums.At(0, n.sums),
		result: from.result.At(0, n.sums), pool: l.dev.NewScratchPool()}
	for k := range p.maps {
		p.picture[k] = from.picture[k].At(0, n.staged)
		for i, values := range n.maps {
			p.maps[k] = append(p.maps[k], from.maps[k][i].At(0, values))
		}
	}
	r := vk.NewRecorder(p.dev)
	ends := p.record(r, l.weights, l.options.Normalize)
	if p.program, err = r.Build("LPIPS", p.pool, vk.BuildOptions{SplitAfter: ends, NoTimings: true}); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// record lists the passes of a band: input, layers, and what is compared. It returns after which the list may be split
// into several submissions.
func (p *program) record(r *vk.Recorder, weights []weights, normalize bool) (ends []int) {
	input := &p.bands.maps[0]
	gain, offset := scaling(normalize)
	for k := range p.maps {
		r.Dispatch(&shaders.LpipsInput{
			MapRows: p.rows, Picture: p.picture[k], Features: p.maps[k][0],
			Push: shaders.LpipsInputPush{Gain: gain, Offset: offset, Width: uint32(input.width),
				Ring: uint32(input.ring)},
		}, vk.Items(p.bands.staged(), 256))
	}
	first := 0
	for i, l := range p.layers {
		for k := range p.maps {
			if l.Pool {
				p.maxPool(r, i, k)
			} else {
				p.convolve(r, weights[i], i, k)
			}
		}
		if l.Compared {
			m := &p.bands.maps[i+1]
			r.Dispatch(&shaders.LpipsDistance{
				MapRows: p.rows, FeaturesX: p.maps[0][i+1], FeaturesY: p.maps[1][i+1],
				ChannelWeights: weights[i].channels, RowSums: p.sums,
				Push: shaders.LpipsDistancePush{
					Layer: uint32(i + 1), Channels: uint32(m.channels), Width: uint32(m.width), Ring: uint32(m.ring),
					FirstSum: uint32(first),
				},
			}, vk.Groups(m.most))
			first += m.height
		}
		ends = append(ends, r.Len()-1)
	}
	r.Copy(p.result.View, p.sums.View)
	return ends
}

func (p *program) convolve(r *vk.Recorder, w weights, i, k int) {
	l, in, out := &p.layers[i], &p.bands.maps[i], &p.bands.maps[i+1]
	const tilePixels, tileChannels = 128, 64 // TILE_PIX and TILE_OUT of the kernel
	r.Dispatch(&shaders.LpipsConv{
		MapRows: p.rows, Features: p.maps[k][i], Weights: w.kernels, Biases: w.biases, Convolved: p.maps[k][i+1],
		Push: shaders.LpipsConvPush{
			Layer: uint32(i + 1), Width: uint32(in.width), Height: uint32(in.height), Channels: uint32(in.channels),
			Ring:     uint32(in.ring),
			OutWidth: uint32(out.width), OutChannels: uint32(out.channels), OutRing: uint32(out.ring),
		},
		Spec: shaders.LpipsConvSpec{WorkgroupSize: convolveLanes(p.dev.Info()), Side: uint32(l.Side),
			Stride: uint32(l.Stride), Pad: uint32(l.Pad)},
	}, vk.Groups3((out.most*out.width+tilePixels-1)/tilePixels, (out.channels+tileChannels-1)/tileChannels, 1))
}

func (p *program) maxPool(r *vk.Recorder, i, k int) {
	l, in, out := &p.layers[i], &p.bands.maps[i], &p.bands.maps[i+1]
	r.Dispatch(&shaders.LpipsPool{
		MapRows: p.rows, Features: p.maps[k][i], Pooled: p.maps[k][i+1],
		Push: shaders.LpipsPoolPush{
			Layer: uint32(i + 1), Channels: uint32(in.channels), Width: uint32(in.width), Ring: uint32(in.ring),
			OutWidth: uint32(out.width), OutRing: uint32(out.ring),
		},
		Spec: shaders.LpipsPoolSpec{Side: uint32(l.Side), Stride: uint32(l.Stride)},
	}, vk.Items(out.most*out.channels*out.width, 256))
}

// scaling returns what colours are multiplied with and what is added then: the scaling layer of lpips 0.1, which
// subtracts a shift and divides by a scale, after 2 c - 1 for colours of 0..1 that are to be normalised.
func scaling(normalize bool) (gain, offset [3]float32) {
	shift, scale := [3]float64{-0.030, -0.088, -0.188}, [3]float64{0.458, 0.448, 0.450}
	for c := range 3 {
		factor, low := 1.0, 0.0
		if normalize {
			factor, low = 2, -1
		}
		gain[c], offset[c] = float32(factor/scale[c]), float32((low-shift[c])/scale[c])
	}
	return gain, offset
}

// run goes through the bands of two pictures.
func (p *program) run(x, y []float32) error {
	s := p.dev.NewSubmission()
	s.Add(p.program)
	width := p.bands.maps[0].width
	for _, rows := range p.bands.rows {
		copy(vk.Host(p.rows), rows)
		for k, picture := range [][]float32{x, y} {
			from := picture[3*width*int(rows[0].First):][:3*width*int(rows[0].Count)]
			copy(vk.Host(vk.Cast[float32](p.picture[k].View)), from)
		}
		t, err := p.dev.Submit(s)
		if err == nil {
			err = p.dev.Wait(t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// score sums what run has left: over the layers the means over the pixels.
func (p *program) score() (score float64) {
	sums := vk.Host(p.result)
	for i, l := range p.layers {
		if !l.Compared {
			continue
		}
		m, sum := &p.bands.maps[i+1], 0.0
		for _, row := range sums[:m.height] {
			sum += float64(row)
		}
		score += sum / float64(m.height*m.width)
		sums = sums[m.height:]
	}
	return score
}

func (p *program) close() (err error) {
	if p.program != nil {
		err = p.program.Close()
	}
	return errors.Join(err, p.pool.Close())
}

// convolveLanes returns the workgroup size of lpips_conv, on which no byte depends.
func convolveLanes(d vk.DeviceInfo) uint32 {
	if d.ShapedForCPU() {
		return 32
	}
	return 256
}
