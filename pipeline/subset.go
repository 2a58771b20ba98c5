package pipeline

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/parallel"
	"vksplat/pipeline/failure"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// subset is the part of a model larger than the device that a Renderer has there: the whole stays in RAM, and for each
// picture, or each band of one that shows too many, the splats that may be visible are uploaded. They keep their order,
// and the others touch no pixel, so that no byte of a picture depends on it.
type subset struct {
	whole   *scene.Splats
	most    int           // splats that the device has room for
	room    *scene.Splats // splats that are being uploaded
	loaded  []uint32      // splats on the device, nil before the first upload
	widths  []float32     // of all splats: the standard deviation along the longest axis
	staging vk.Slice[uint32]
}

// mostSplats returns about how many of n splats the device has room for besides pictures.
func (p *renderPlan) mostSplats(n int) int {
	return largestThat(n, func(k int) bool {
		w, err := p.needs(k)
		return err == nil && float64(w.device)*spareFactor <= float64(p.d.Budget())
	})
}

// loadSubset makes room for some of the splats of s.
func (e *engine) loadSubset(s *scene.Splats, most int) (m *subset, err error) {
	model := e.setup.model
	if err := model.reserve(most); err != nil {
		return nil, err
	}
	m = &subset{whole: s, most: model.capacity(), widths: make([]float32, s.N)}
	if m.staging, err = vk.Make[uint32](model.dev, vk.Upload, model.stagingRows()*model.unit,
		"model staging"); err != nil {
		return nil, err
	}
	m.room = scene.NewSplats(min(m.most, s.N), s.Degree)
	m.eachBlock(func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			m.widths[i] = float32(math.Exp(float64(slices.Max(s.LogScales[3*i : 3*i+3]))))
		}
	})
	return m, e.fitPictures(m.most)
}

// subsetBlock is how many splats one unit of parallel work checks.
const subsetBlock = 1 << 14

// eachBlock calls f for blocks of the splats [lo, hi), on several cores.
func (m *subset) eachBlock(f func(block, lo, hi int)) {
	parallel.For((m.whole.N+subsetBlock-1)/subsetBlock,
		func(k int) { f(k, k*subsetBlock, min((k+1)*subsetBlock, m.whole.N)) })
}

// visible returns the splats that may touch the rows of pixels [first, first + rows) of a picture, and some that do
// not.
func (m *subset) visible(c *scene.Camera, near, widen float64, first, rows int) []uint32 {
	lists := make([][]uint32, (m.whole.N+subsetBlock-1)/subsetBlock)
	b := newBounds(c, near, widen, first, rows)
	m.eachBlock(func(block, lo, hi int) {
		for i := lo; i < hi; i++ {
			if m.whole.LogitOpacities[i] > HiddenLogit && !b.misses(m.whole.Means[3*i:3*i+3], float64(m.widths[i])) {
				lists[block] = append(lists[block], uint32(i))
			}
		}
	})
	return slices.Concat(lists...)
}

// bounds decides which splats a view surely does not show.
type bounds struct {
	*scene.Camera
	near   float64
	filter float64    // low-pass, px^2
	lo, hi [2]float64 // pixels, to the ends of tiles
	steep  [2]float64 // length of a row of the Jacobian at depth 1, at most
	far    float64    // length of the translation
}

func newBounds(c *scene.Camera, near, widen float64, first, rows int) *bounds {
	b := &bounds{Camera: c, near: near, filter: layout.Eps2d + widen,
		far: math.Sqrt(c.T[0]*c.T[0] + c.T[1]*c.T[1] + c.T[2]*c.T[2])}
	b.lo = [2]float64{0, float64(first)}
	b.hi = [2]float64{float64(layout.Tiles(c.Width) * layout.TileSize),
		float64(first + layout.Tiles(rows)*layout.TileSize)}
	focal, centre, size := [2]float64{c.Fx, c.Fy}, [2]float64{c.Cx, c.Cy},
		[2]float64{float64(c.Width), float64(c.Height)}
	for k := range b.steep { // the Jacobian's slopes are limited to the picture and a margin
		margin := layout.JacobianMargin * 0.5 * size[k] / focal[k]
		slope := max(math.Abs(centre[k]/focal[k]+margin), math.Abs((size[k]-centre[k])/focal[k]+margin))
		b.steep[k] = focal[k] * math.Sqrt(1+slope*slope)
	}
	return b
}

// misses reports whether a splat of a width surely touches no pixel. The device computes in single precision: its
// rounding is added. Fisheye pictures, and those that a lens bends, miss only splats behind them, and those of a wide
// lens none. A NaN misses none.
func (b *bounds) misses(mean []float32, width float64) bool {
	const rounding = 1e-6 // of float32, several operations of it
	x, y, z := float64(mean[0]), float64(mean[1]), float64(mean[2])
	r, t := &b.R, &b.T
	off := rounding * (math.Sqrt(x*x+y*y+z*z) + b.far)
	depth := r[6]*x + r[7]*y + r[8]*z + t[2]
	if b.Distortion != nil && b.Distortion.Wide {
		return false
	}
	if depth+off < b.near {
		return true
	}
	if b.Model == scene.Fisheye || b.Distortion != nil || !(depth > 8*off) {
		return false
	}
	p := [2]float64{r[0]*x + r[1]*y + r[2]*z + t[0], r[3]*x + r[4]*y + r[5]*z + t[1]}
	focal, centre := [2]float64{b.Fx, b.Fy}, [2]float64{b.Cx, b.Cy}
	near := depth - off
	for k := range p {
		at := focal[k]*p[k]/depth + centre[k]
		deviation := b.steep[k] * width / near
		extent := math.Sqrt((2*math.Log(255) + layout.ExtentSlack) * (deviation*deviation + b.filter))
		extent += 1 + 1e-3*extent + (focal[k]*off+math.Abs(at-centre[k])*off)/near + rounding*math.Abs(at)
		if at+extent < b.lo[k] || at-extent > b.hi[k] {
			return true
		}
	}
	return false
}

// loadVisible uploads the splats that rows of a picture may show, if there is room for them. again says that pictures
// in flight did not fit, and that all of them are queued again.
func (r *Renderer) loadVisible(c *scene.Camera, first, rows int) (fits, again bool, err error) {
	m := r.subset
	ids := m.visible(c, r.cfg.Near, r.cfg.widen(c), first, rows)
	if len(ids) > m.most {
		return false, false, nil
	}
	if m.loaded != nil && slices.Equal(ids, m.loaded) {
		return true, false, nil
	}
	for i := range r.e.programs.frames { // what is on the device is still being drawn
		if again, err := r.collectPart(r.e.programs.frames[(r.queued+i)%len(r.e.programs.frames)]); again ||
			err != nil {
			return true, again, err
		}
	}
	some := m.room.Slice(0, len(ids))
	m.gather(ids, some)
	m.loaded = ids
	e := r.e
	for _, c := range e.setup.model.chunks {
		for at := 0; at < c.splats && c.first+at < some.N; at += e.setup.model.unit {
			if err := e.setup.model.uploadUnit(some, c, at, m.staging); err != nil {
				return true, false, err
			}
		}
	}
	return true, false, e.setup.setCounters(uint32(some.N))
}

// loadBand uploads the splats that a band of a picture may show. queued says that all pictures in flight are queued
// again, this one among them.
func (r *Renderer) loadBand(d *drawing, band int) (queued bool, err error) {
	first, rows := partRows(d.camera.Height, band, r.e.setup.bands)
	if rows == 0 {
		return false, nil
	}
	fits, again, err := r.loadVisible(&d.camera, first, rows)
	if again || err != nil || fits {
		return again, err
	}
	return true, r.finer(&d.camera)
}

// gather copies splats.
func (m *subset) gather(ids []uint32, into *scene.Splats) {
	from, to := m.whole.Tensors(), into.Tensors()
	parallel.For((len(ids)+subsetBlock-1)/subsetBlock, func(block int) {
		for i := block * subsetBlock; i < min((block+1)*subsetBlock, len(ids)); i++ {
			id := int(ids[i])
			for k, t := range from {
				copy(to[k].At(i), t.At(id))
			}
		}
	})
}

// finer draws all flying pictures in more bands, each of which may show fewer splats.
func (r *Renderer) finer(c *scene.Camera) error {
	e := r.e
	if e.setup.bands >= e.setup.mostBands() {
		return fault.WithHint(fmt.Errorf("render: %w: one row of tiles may show %d splats of the model, %d fit",
			ErrTooSmall, r.subset.fullestRow(c, &r.cfg), r.subset.most),
			failure.RaiseMemory()+", draw larger pictures, whose rows show less each, or convert the model to fewer "+
				"splats ("+fault.Command("convert --max-splats N")+").")
	}
	if err := e.programs.waitForAll(); err != nil {
		return err
	}
	if err := r.refit(min(2*e.setup.bands, e.setup.mostBands())); err != nil {
		return err
	}
	return r.requeue()
}

// fullestRow returns how many splats the fullest row of tiles of a picture may show: with room for that many it can be
// drawn.
func (m *subset) fullestRow(c *scene.Camera, cfg *RenderConfig) (most int) {
	for first := 0; first < c.Height; first += layout.TileSize {
		rows := min(layout.TileSize, c.Height-first)
		most = max(most, len(m.visible(c, cfg.Near, cfg.widen(c), first, rows)))
	}
	return most
}

// Shared reports whether the model is larger than the device, so that the splats of each picture are uploaded for it.
func (r *Renderer) Shared() bool { return r.subset != nil }

// free frees the staging memory; m may be nil.
func (m *subset) free(dev *vk.Device) (err error) {
	if m != nil && !m.staging.IsZero() {
		err = dev.Free(m.staging.View)
		m.staging = vk.Slice[uint32]{}
	}
	return err
}

// newSubset makes a renderer of a model that is larger than the device.
func (p *renderPlan) newSubset(s *scene.Splats, w renderNeeds) (*Renderer, error) {
	for most := p.mostSplats(s.N); ; most = most * 3 / 4 {
		if most == 0 {
			return nil, fmt.Errorf("create renderer: %w: nothing is left for splats", ErrTooSmall)
		}
		r, err := p.newRenderer(s.N, w)
		if err != nil {
			return nil, err
		}
		r.e.setup.model.setUnit(most)
		if r.subset, err = r.e.loadSubset(s, most); err == nil {
			err = r.e.memory.buildToFit()
		}
		if err == nil {
			return r, nil
		}
		if err = errors.Join(err, r.Close()); !IsShortage(err) {
			return nil, err
		}
	}
}
