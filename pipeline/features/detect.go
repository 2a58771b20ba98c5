package features

import (
	"math"

	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// passes are what happens to the octaves of a photo, recorded.
type passes struct {
	*vk.Recorder
	processor     bool // kernels for processors
	octaves       []octave
	photo         vk.Slice[uint32]
	width, height int
	n             int               // levels of a band
	levels        vk.Slice[float32] // of a band
	blurred       vk.Slice[float32] // a level on its way to the next: [width][rows]
	base          vk.Slice[float32] // level 0 of the octave, but of the first
}

// begin begins a list of passes over the octaves of a part, with n levels of each.
func (e *Extractor) begin(l *lane, part *part, n int) *passes {
	p := &passes{Recorder: vk.NewRecorder(e.dev), processor: e.processor, octaves: part.octaves, width: l.width,
		height: l.height, n: n}
	most := 0
	for _, o := range part.octaves {
		for _, b := range o.bands {
			most = max(most, b.rows*o.pitch)
		}
	}
	p.photo = vk.ScratchOf[uint32](p.Recorder, "photo", l.photo.N())
	p.Copy(p.photo.View, l.photo.View)
	p.levels = vk.ScratchOf[float32](p.Recorder, "levels", n*most)
	p.blurred = vk.ScratchOf[float32](p.Recorder, "blurred columns", most)
	return p
}

// each goes through the bands and calls visit with the levels of each.
func (p *passes) each(visit func(o *octave, b *band, levels vk.Slice[float32])) {
	for i := range p.octaves {
		o, next := &p.octaves[i], (*octave)(nil)
		var base vk.Slice[float32]
		if i+1 < len(p.octaves) {
			next = &p.octaves[i+1]
			base = vk.ScratchOf[float32](p.Recorder, "first level", next.height*next.pitch)
		}
		for k := range o.bands {
			b := &o.bands[k]
			p.blurAll(o, b)
			visit(o, b, p.levels.At(0, p.n*b.rows*o.pitch))
			if next != nil {
				p.halve(o, b, next, base)
			}
		}
		p.base = base
	}
}

// blurAll makes the levels of a band: of the photo, or of the first level of its octave.
func (p *passes) blurAll(o *octave, b *band) {
	sigmas := blurs(o.index)
	if p.base.IsZero() {
		in := b.level(o, p.levels, 1)
		p.Dispatch(&shaders.SiftInput{Photo: p.photo, Plane: in, Push: shaders.SiftInputPush{Band: b.on(o),
			Zoom: uint32(1 - min(o.index, 0)), PhotoWidth: uint32(p.width), PhotoHeight: uint32(p.height)}},
			vk.Items(b.rows*o.width, 256))
		p.blur(o, b, in, b.level(o, p.levels, 0), sigmas[0])
	} else {
		p.Copy(b.level(o, p.levels, 0).View, p.base.At(b.first*o.pitch, b.rows*o.pitch).View)
	}
	for i := 1; i < p.n; i++ {
		p.blur(o, b, b.level(o, p.levels, i-1), b.level(o, p.levels, i), sigmas[i])
	}
}

func (p *passes) blur(o *octave, b *band, from, to vk.Slice[float32], sigma float64) {
	weights, radius := gaussian(sigma)
	turn := func(from, to vk.Slice[float32], width, rows, pitch, toPitch int) {
		const lines, length, own = 32, 96, 32 // of a workgroup; pixels of an invocation on processors
		grid, spec := vk.Groups((width+length-1)/length*((rows+lines-1)/lines)), shaders.SiftBlurSpec{}
		if p.processor {
			grid, spec.Radius = vk.Items((width+own-1)/own*rows, 256), uint32(radius)
		}
		p.Dispatch(&shaders.SiftBlur{Plane: from, Blurred: to, Processor: p.processor, Spec: spec,
			Push: shaders.SiftBlurPush{Width: uint32(width), Rows: uint32(rows), Pitch: uint32(pitch),
				BlurredPitch: uint32(toPitch), Radius: uint32(radius), Weights: weights}}, grid)
	}
	turned := p.blurred.At(0, b.rows*o.width)
	turn(from, turned, o.width, b.rows, o.pitch, b.rows)
	turn(turned, to, b.rows, o.width, b.rows, o.pitch)
}

// halve makes rows of the first level of the next octave of a band's own rows.
func (p *passes) halve(o *octave, b *band, next *octave, to vk.Slice[float32]) {
	first := (b.begin + 1) / 2
	rows := (b.end+1)/2 - first
	p.Dispatch(&shaders.SiftHalve{Plane: b.level(o, p.levels, 3), Halved: to, Push: shaders.SiftHalvePush{
		Band: b.on(o), Width: uint32(next.width), Pitch: uint32(next.pitch), First: uint32(first),
		Rows: uint32(rows)}}, vk.Items(rows*next.width, 256))
}

// recordDetect lists the passes that find the extrema of a part's octaves.
func (e *Extractor) recordDetect(l *lane, part *part) *vk.Recorder {
	p := e.begin(l, part, levels)
	points := vk.ScratchOf[layout.SiftPoint](p.Recorder, "extrema", part.found.N())
	numbers := vk.ScratchOf[uint32](p.Recorder, "numbers of extrema", part.counts.N())
	p.each(func(o *octave, b *band, levels vk.Slice[float32]) {
		p.Dispatch(&shaders.SiftExtrema{Levels: levels, Points: points, Counts: numbers, Processor: p.processor,
			Push: shaders.SiftExtremaPush{Band: b.on(o), Begin: uint32(b.begin), End: uint32(b.end),
				First: uint32(b.tile), Peak: e.options.Peak, Edge: e.options.Edge}}, vk.Groups(b.grid(o)))
	})
	p.Copy(part.found.View, points.View)
	p.Copy(part.counts.View, numbers.View)
	return p.Recorder
}

// detected appends the extrema that were found to all.
func (p *part) detected(all []candidate) []candidate {
	i, found := 0, vk.Host(p.found)
	for tile, n := range vk.Host(p.counts) {
		for tile == p.octaves[i].tiles {
			i++
		}
		for _, at := range found[tile*slots:][:n] {
			scale := firstSigma * math.Exp2(float64(at.Level)/3+float64(p.octaves[i].index))
			all = append(all, candidate{octave: p.octaves[i].index, scale: float32(scale), SiftPoint: at})
		}
	}
	return all
}

// recordDescribe lists the passes that find the directions and descriptors of a part's points.
func (e *Extractor) recordDescribe(l *lane, part *part) *vk.Recorder {
	p := e.begin(l, part, describedLevels)
	at := vk.ScratchOf[layout.SiftPoint](p.Recorder, "keypoints", part.points.N())
	runs := vk.ScratchOf[layout.SiftRun](p.Recorder, "keypoints of bands", part.runs.N())
	directions := vk.ScratchOf[[2]float32](p.Recorder, "directions", part.angles.N())
	descriptors := vk.ScratchOf[uint32](p.Recorder, "descriptors", part.descriptors.N())
	p.Copy(at.View, part.points.View)
	p.Copy(runs.View, part.runs.View)
	run := 0
	p.each(func(o *octave, b *band, levels vk.Slice[float32]) {
		grids := runs.At(run, 1)
		p.Dispatch(&shaders.SiftOrient{Points: at, Levels: levels, Angles: directions, Runs: runs,
			Push: shaders.SiftOrientPush{Band: b.on(o), Run: uint32(run)}}, vk.Indirect(grids.View))
		p.Dispatch(&shaders.SiftDescribe{Points: at, Angles: vk.Cast[float32](directions.View), Levels: levels,
			Descriptors: descriptors, Runs: runs, Processor: p.processor,
			Push: shaders.SiftDescribePush{Band: b.on(o), Run: uint32(run)}}, vk.Indirect(grids.Slice(12, 12)))
		run++
	})
	p.Copy(part.angles.View, directions.View)
	p.Copy(part.descriptors.View, descriptors.View)
	return p.Recorder
}

// share gives candidates of a part to its bands, to be described, and says whether there are any.
func (e *Extractor) share(found []candidate, p *part) bool {
	invocations := 1 // of a workgroup of sift_describe for a point's direction
	if e.processor {
		invocations = 64
	}
	points, runs, n := vk.Host(p.points), vk.Host(p.runs)[:0], 0
	for i := range p.octaves {
		o := &p.octaves[i]
		for k := range o.bands {
			b, first := &o.bands[k], n
			for j := range found {
				c := &found[j]
				if y := int(c.Y); c.octave == o.index && y >= b.begin && y < b.end {
					points[n] = c.SiftPoint
					c.part, c.place = p, n
					n++
				}
			}
			runs = append(runs, layout.SiftRun{Orient: vk.Groups(n - first).Words(),
				Describe: vk.Items(2*(n-first), invocations).Words(), First: uint32(first), N: uint32(n - first)})
		}
	}
	return n > 0
}

// gather makes a keypoint of each direction of a candidate. Its bytes are the lane's.
func gather(found []candidate) (all []described) {
	all = make([]described, 0, len(found)*5/4)
	for i := range found {
		c := &found[i]
		pixel := float32(math.Exp2(float64(c.octave)))
		for k, angle := range vk.Host(c.part.angles)[c.place] {
			if angle >= 0 {
				all = append(all, described{Keypoint{c.X*pixel + 0.5, c.Y*pixel + 0.5, c.scale, angle},
					c.part.descriptors.Host()[(2*c.place+k)*DescriptorBytes:][:DescriptorBytes]})
			}
		}
	}
	return all
}
