package features

import (
	"errors"
	"slices"

	"vksplat/shaders/layout"
	"vksplat/vk"
)

// lanes is how many photos are processed at a time: the host sorts what it found in some while the device has
// another.
const lanes = 4

// lane is what photos of one size go through, one after the other: programs, and memory of the host.
type lane struct {
	width, height int
	photo         vk.Slice[uint32] // four pixels a word
	parts         []*part
	held          []vk.View // all memory
}

// part is octaves that a photo goes through together.
type part struct {
	octaves          []octave
	detect, describe program
	found            vk.Slice[layout.SiftPoint] // [tiles][slots]
	counts           vk.Slice[uint32]           // [tiles]
	points           vk.Slice[layout.SiftPoint] // to describe
	runs             vk.Slice[layout.SiftRun]   // [bands]
	angles           vk.Slice[[2]float32]       // [points]
	descriptors      vk.Slice[uint32]           // [points][2][32]
}

// program is built when it is first needed, and when the scratch pool has grown since.
type program struct {
	name   string
	record func() *vk.Recorder
	*vk.Program
}

// acquire waits for a lane that is free, one for photos of a size if there is one.
func (e *Extractor) acquire(width, height int) *lane {
	e.running <- struct{}{}
	e.mu.Lock()
	defer e.mu.Unlock()
	i := max(0, slices.IndexFunc(e.free, func(l *lane) bool { return l.width == width && l.height == height }))
	l := e.free[i]
	e.free = slices.Delete(e.free, i, i+1)
	return l
}

func (e *Extractor) release(l *lane) {
	e.mu.Lock()
	e.free = append(e.free, l)
	e.mu.Unlock()
	<-e.running
}

// fit makes a lane one for photos of a size.
func (e *Extractor) fit(l *lane, width, height int) error {
	if l.width == width && l.height == height {
		return nil
	}
	octaves, err := e.octavesOf(width, height)
	if err = errors.Join(err, l.close(e.dev)); err != nil {
		return err
	}
	err = hold(e.dev, l, &l.photo, vk.Upload, (width*height+3)/4, "grey photo")
	for _, octaves := range octaves {
		p := &part{octaves: octaves}
		l.parts = append(l.parts, p)
		p.detect = program{name: "features: detect", record: func() *vk.Recorder { return e.recordDetect(l, p) }}
		p.describe = program{name: "features: describe", record: func() *vk.Recorder { return e.recordDescribe(l, p) }}
		tiles, bands := octaves[len(octaves)-1].tiles, 0
		for _, o := range octaves {
			bands += len(o.bands)
		}
		points := min(e.options.Max, tiles*slots)
		err = errors.Join(err, hold(e.dev, l, &p.found, vk.Readback, tiles*slots, "extrema"),
			hold(e.dev, l, &p.counts, vk.Readback, tiles, "numbers of extrema"),
			hold(e.dev, l, &p.points, vk.Upload, points, "keypoints"),
			hold(e.dev, l, &p.runs, vk.Upload, bands, "keypoints of bands"),
			hold(e.dev, l, &p.angles, vk.Readback, points, "directions"),
			hold(e.dev, l, &p.descriptors, vk.Readback, 64*points, "descriptors"))
	}
	if err != nil {
		return errors.Join(err, l.close(e.dev))
	}
	l.width, l.height = width, height
	return nil
}

func hold[T any](d *vk.Device, l *lane, s *vk.Slice[T], kind vk.MemoryKind, n int, name string) (err error) {
	if *s, err = vk.Make[T](d, kind, n, name); err == nil {
		l.held = append(l.held, s.View)
	}
	return err
}

// close empties a lane.
func (l *lane) close(d *vk.Device) (err error) {
	for _, p := range l.parts {
		err = errors.Join(err, p.detect.close(), p.describe.close())
	}
	for _, v := range l.held {
		err = errors.Join(err, d.Free(v))
	}
	*l = lane{}
	return err
}

func (p *program) close() error {
	if p.Program == nil {
		return nil
	}
	return p.Close()
}

// run runs programs one after the other, and waits for them.
func (e *Extractor) run(list ...*program) error {
	var last vk.Ticket
	for _, p := range list {
		t, err := e.submit(p)
		if err != nil {
			return errors.Join(err, e.dev.Wait(last))
		}
		last = t
	}
	if err := e.dev.Wait(last); err != nil || e.timed == nil {
		return err
	}
	for _, p := range list {
		e.timed(p.Timings(nil))
	}
	return nil
}

// submit submits a program. No other one may be built in between, because the scratch pool may grow then.
func (e *Extractor) submit(p *program) (vk.Ticket, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.Program == nil || p.Stale() {
		err := p.close()
		if err == nil {
			p.Program, err = p.record().Build(p.name, e.pool, vk.BuildOptions{NoTimings: e.timed == nil})
		}
		if err != nil {
			return 0, err
		}
	}
	s := e.dev.NewSubmission()
	s.Add(p.Program)
	return e.dev.Submit(s)
}
