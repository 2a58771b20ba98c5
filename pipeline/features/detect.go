package features

import (
	"errors"
	"math"
	"slices"

	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// memory is that of the host which the device reads and writes. It grows with photos, and stays.
type memory struct {
	photo       vk.Slice[uint32]           // four pixels a word
	points      vk.Slice[layout.SiftPoint] // to describe
	found       vk.Slice[layout.SiftPoint] // [tiles][slots]
	counts      vk.Slice[uint32]           // [tiles]
	angles      vk.Slice[[2]float32]       // [points]
	descriptors vk.Slice[uint32]           // [points][2][32]
}

// grow makes room for at least n elements, and returns room for n.
func grow[T any](d *vk.Device, s *vk.Slice[T], kind vk.MemoryKind, n int, name string) (vk.Slice[T], error) {
	n = max(n, 1)
	if s.IsZero() || s.N() < n {
		if !s.IsZero() {
			if err := d.Free(s.View); err != nil {
				return *s, err
			}
		}
		var err error
		if *s, err = vk.Make[T](d, kind, n, name); err != nil {
			*s = vk.Slice[T]{}
			return *s, err
		}
	}
	return s.At(0, n), nil
}

func (m *memory) free(d *vk.Device) (err error) {
	for _, v := range []vk.View{m.photo.View, m.points.View, m.found.View, m.counts.View, m.angles.View,
		m.descriptors.View} {
		if !v.IsZero() {
			err = errors.Join(err, d.Free(v))
		}
	}
	*m = memory{}
	return err
}

func (e *Extractor) upload(grey []byte) error {
	photo, err := grow(e.dev, &e.photo, vk.Upload, (len(grey)+3)/4, "grey photo")
	if err == nil {
		copy(photo.Host(), grey)
	}
	return err
}

// passes are what happens to the octaves of a photo, recorded.
type passes struct {
	*vk.Recorder
	octaves       []octave
	photo         vk.Slice[uint32]
	width, height int
	n             int               // levels of a band
	levels        vk.Slice[float32] // of a band
	blurred       vk.Slice[float32] // a level on its way to the next: [width][rows]
	base          vk.Slice[float32] // level 0 of the octave, but of the first
}

// begin begins a list of passes over octaves, with n levels of each.
func (e *Extractor) begin(octaves []octave, width, height, n int) *passes {
	p := &passes{Recorder: vk.NewRecorder(e.dev), octaves: octaves, width: width, height: height, n: n}
	most := 0
	for _, o := range octaves {
		for _, b := range o.bands {
			most = max(most, b.rows*o.pitch)
		}
	}
	words := (width*height + 3) / 4
	p.photo = vk.ScratchOf[uint32](p.Recorder, "photo", words)
	p.Copy(p.photo.View, e.photo.At(0, words).View)
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
	const lines, length = 32, 96 // of a workgroup
	turn := func(from, to vk.Slice[float32], width, rows, pitch, toPitch int) {
		p.Dispatch(&shaders.SiftBlur{Plane: from, Blurred: to, Push: shaders.SiftBlurPush{Width: uint32(width),
			Rows: uint32(rows), Pitch: uint32(pitch), BlurredPitch: uint32(toPitch), Radius: uint32(radius),
			Weights: weights}}, vk.Groups((width+length-1)/length*((rows+lines-1)/lines)))
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

// run runs passes and waits for them.
func (e *Extractor) run(p *passes, name string) (err error) {
	program, err := p.Build(name, e.pool, vk.BuildOptions{NoTimings: e.timed == nil})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	s := e.dev.NewSubmission()
	s.Add(program)
	t, err := e.dev.Submit(s)
	if err != nil {
		return err
	}
	if err := e.dev.Wait(t); err != nil || e.timed == nil {
		return err
	}
	e.timed(program.Timings(nil))
	return nil
}

// detect finds the extrema of octaves.
func (e *Extractor) detect(octaves []octave, width, height int) (all []candidate, err error) {
	tiles := octaves[len(octaves)-1].tiles
	found, err1 := grow(e.dev, &e.found, vk.Readback, tiles*slots, "extrema")
	counts, err2 := grow(e.dev, &e.counts, vk.Readback, tiles, "numbers of extrema")
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	p := e.begin(octaves, width, height, levels)
	points := vk.ScratchOf[layout.SiftPoint](p.Recorder, "extrema", tiles*slots)
	numbers := vk.ScratchOf[uint32](p.Recorder, "numbers of extrema", tiles)
	p.each(func(o *octave, b *band, levels vk.Slice[float32]) {
		p.Dispatch(&shaders.SiftExtrema{Levels: levels, Points: points, Counts: numbers,
			Push: shaders.SiftExtremaPush{Band: b.on(o), Begin: uint32(b.begin), End: uint32(b.end),
				First: uint32(b.tile), Peak: e.options.Peak, Edge: e.options.Edge}}, vk.Groups(b.grid(o)))
	})
	p.Copy(found.View, points.View)
	p.Copy(counts.View, numbers.View)
	if err := e.run(p, "features: detect"); err != nil {
		return nil, err
	}
	i := 0
	for tile, n := range vk.Host(counts) {
		for tile == octaves[i].tiles {
			i++
		}
		for _, at := range vk.Host(found)[tile*slots:][:n] {
			scale := firstSigma * math.Exp2(float64(at.Level)/3+float64(octaves[i].index))
			all = append(all, candidate{octaves[i].index, float32(scale), at})
		}
	}
	return all, nil
}

// share gives the candidates of octaves to their bands, and returns them band by band.
func share(octaves []octave, found []candidate) (points []candidate) {
	for i := range octaves {
		o := &octaves[i]
		for k := range o.bands {
			b := &o.bands[k]
			b.points = len(points)
			for _, c := range found {
				if y := int(c.Y); c.octave == o.index && y >= b.begin && y < b.end {
					points = append(points, c)
				}
			}
			b.n = len(points) - b.points
		}
	}
	return points
}

// describe finds the directions and descriptors of those candidates that are of octaves.
func (e *Extractor) describe(octaves []octave, width, height int, found []candidate) ([]described, error) {
	points := share(octaves, found)
	if len(points) == 0 {
		return nil, nil
	}
	staged, err1 := grow(e.dev, &e.points, vk.Upload, len(points), "keypoints")
	angles, err2 := grow(e.dev, &e.angles, vk.Readback, len(points), "directions")
	words, err3 := grow(e.dev, &e.descriptors, vk.Readback, 64*len(points), "descriptors")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	for i := range points {
		vk.Host(staged)[i] = points[i].SiftPoint
	}
	p := e.begin(octaves, width, height, describedLevels)
	at := vk.ScratchOf[layout.SiftPoint](p.Recorder, "keypoints", len(points))
	directions := vk.ScratchOf[[2]float32](p.Recorder, "directions", len(points))
	descriptors := vk.ScratchOf[uint32](p.Recorder, "descriptors", 64*len(points))
	p.Copy(at.View, staged.View)
	p.each(func(o *octave, b *band, levels vk.Slice[float32]) {
		p.Dispatch(&shaders.SiftOrient{Points: at, Levels: levels, Angles: directions, Push: shaders.SiftOrientPush{
			Band: b.on(o), First: uint32(b.points), NPoints: uint32(b.n)}}, vk.Groups(b.n))
		p.Dispatch(&shaders.SiftDescribe{Points: at, Angles: vk.Cast[float32](directions.View), Levels: levels,
			Descriptors: descriptors, Push: shaders.SiftDescribePush{Band: b.on(o), First: uint32(b.points),
				NPoints: uint32(b.n)}}, vk.Groups(2*b.n))
	})
	p.Copy(angles.View, directions.View)
	p.Copy(words.View, descriptors.View)
	if err := e.run(p, "features: describe"); err != nil {
		return nil, err
	}
	return gather(points, vk.Host(angles), words.Host()), nil
}

// gather makes a keypoint of each direction of a candidate.
func gather(points []candidate, angles [][2]float32, bytes []byte) (all []described) {
	bytes = slices.Clone(bytes) // the next photo overwrites them
	for i := range points {
		c := &points[i]
		pixel := float32(math.Exp2(float64(c.octave)))
		for k, angle := range angles[i] {
			if angle >= 0 {
				all = append(all, described{Keypoint{c.X*pixel + 0.5, c.Y*pixel + 0.5, c.scale, angle},
					bytes[(2*i+k)*DescriptorBytes:][:DescriptorBytes]})
			}
		}
	}
	return all
}
