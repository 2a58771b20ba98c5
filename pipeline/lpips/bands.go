package lpips

import (
	"vksplat/scene/metric"
	"vksplat/shaders/layout"
)

// featureMaps are the feature maps that a layer makes of one picture, in bands of rows: see shaders/shared/bands.glsl.
type featureMaps struct {
	channels, width, height int
	ring                    int // rows in memory
	most                    int // rows that a band makes at most
}

// values is how many numbers are in memory.
func (m *featureMaps) values() int { return m.ring * m.channels * m.width }

// bands says which rows of which maps a band makes. A band takes some rows of the pictures, and each layer makes the
// rows whose windows are complete with them: no row is made twice, and what the next band needs of this one's stays in
// memory.
type bands struct {
	maps []featureMaps      // the input, then layer by layer
	rows [][]layout.MapRows // [bands][maps]
}

// newBands plans bands of the given height for pictures not smaller than leastSide.
func newBands(layers []metric.LPIPSLayer, width, height, input int) *bands {
	b := &bands{maps: []featureMaps{{channels: 3, width: width, height: height}}}
	for i, l := range layers {
		in := b.maps[i]
		b.maps = append(b.maps, featureMaps{channels: l.Out, width: l.Rows(in.width), height: l.Rows(in.height)})
	}
	made := make([]int, len(b.maps)) // rows that the bands so far make
	for made[0] < height {
		rows := make([]layout.MapRows, len(b.maps))
		for i := range b.maps {
			end := min(height, made[0]+input)
			if i > 0 {
				end = completeRows(layers[i-1], made[i-1], b.maps[i-1].height)
			}
			rows[i] = layout.MapRows{First: uint32(made[i]), Count: uint32(end - made[i])}
			made[i] = end
		}
		b.rows = append(b.rows, rows)
		b.hold(layers, rows)
	}
	return b
}

// completeRows returns how many rows a layer can make of an input of which it has the first ones.
func completeRows(l metric.LPIPSLayer, have, height int) int {
	if have == height {
		return l.Rows(height)
	}
	if have+l.Pad < l.Side {
		return 0
	}
	return min((have+l.Pad-l.Side)/l.Stride+1, l.Rows(height))
}

// hold makes room for a band's rows in each map, and for those before them that the next layer needs.
func (b *bands) hold(layers []metric.LPIPSLayer, rows []layout.MapRows) {
	for i := range b.maps {
		m, first, end := &b.maps[i], int(rows[i].First), int(rows[i].First+rows[i].Count)
		m.most = max(m.most, end-first)
		if i < len(layers) {
			first = min(first, max(0, int(rows[i+1].First)*layers[i].Stride-layers[i].Pad))
			m.ring = max(m.ring, layers[i].Side) // the kernel's own demand
		}
		m.ring = max(m.ring, end-first)
	}
}

// staged returns the pixels of a picture that a band takes at most.
func (b *bands) staged() int { return b.maps[0].most * b.maps[0].width }

// leastSide returns the smallest side of a picture that every layer makes something of.
func leastSide(layers []metric.LPIPSLayer) int {
	for side := 1; ; side++ {
		rows := side
		for _, l := range layers {
			rows = l.Rows(rows)
		}
		if rows > 0 {
			return side
		}
	}
}

// leastRows is how many rows of pictures a band has at least where there is memory enough, and mostPixels how many
// pixels it has at most: more make nothing faster.
const (
	leastRows  = 16
	mostPixels = 1 << 18
)

// leastBytes returns the device memory that comparing pictures of a size takes with a network, weights and all. With
// less it still works, but slower, with more faster, up to some ten times this.
func leastBytes(net string, width, height int) int64 {
	layers := metric.LPIPSLayers(net)
	if least := leastSide(layers); width < least || height < least {
		return 0
	}
	var weights int64
	for _, l := range layers {
		weights += 4 * int64(l.Numbers())
	}
	return weights + newBands(layers, width, height, leastRows).counts(layers).bytes()
}
