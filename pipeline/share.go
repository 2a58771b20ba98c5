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

// share is how a Renderer draws a model that is larger than the device: whole it stays in RAM, and for each picture, or
// each band of one where that has too many, those splats are taken to the device that may be seen there. They keep
// their order, and what is left out touches no pixel, so that no byte of a picture knows of it.
type share struct {
	whole   *scene.Splats
	most    int              // splats that the device has room for
	room    *scene.Splats    // those that are on their way there
	loaded  []uint32         // those that are there, nil before the first
	widths  []float32        // of all splats: the standard deviation along the longest axis
	staging vk.Slice[uint32] // through which they go
}

// shareParts is by how much less of the device the splats take than they could: the rest is for what a picture takes
// beside them.
const shareParts = 4.0 / 3

// mostToRender returns about how many splats of a model the device has room for beside pictures of cameras.
func (d *Device) mostToRender(n, degree int, cameras []scene.Camera, p *parts) int {
	lo, hi := 0, n
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if w, err := d.renderNeeds(mid, degree, cameras, p); err == nil &&
			float64(w.device)*shareParts <= float64(d.dev.Budget()) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// loadShare makes room for some of the splats of s, as many as leave room for pictures, in place of all of them.
func (e *engine) loadShare(s *scene.Splats, p *parts, most int) (m *share, err error) {
	if err := e.setup.model.reserve(most); err != nil {
		return nil, err
	}
	m = &share{whole: s, most: e.setup.model.capacity(), widths: make([]float32, s.N)}
	if m.staging, err = vk.Make[uint32](e.setup.dev, vk.Upload, e.setup.model.stagingRows()*e.setup.model.unit,
		"model staging"); err != nil {
		return nil, err
	}
	m.room = scene.NewSplats(min(m.most, s.N), s.Degree)
	m.eachBlock(func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			m.widths[i] = float32(math.Exp(float64(slices.Max(s.LogScales[3*i : 3*i+3]))))
		}
	})
	return m, e.fitPictures(p, m.most)
}

// shareBlock is how many splats one unit of parallel work looks at.
const shareBlock = 1 << 14

// eachBlock calls f for blocks of the splats [lo, hi), on several cores.
func (m *share) eachBlock(f func(block, lo, hi int)) {
	parallel.For((m.whole.N+shareBlock-1)/shareBlock,
		func(k int) { f(k, k*shareBlock, min((k+1)*shareBlock, m.whole.N)) })
}

// visible returns the splats that may touch the rows of pixels [first, first + rows) of a picture, and some that do
// not.
func (m *share) visible(c *scene.Camera, near, widen float64, first, rows int) []uint32 {
	lists := make([][]uint32, (m.whole.N+shareBlock-1)/shareBlock)
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

// bounds is a view as far as it takes to tell which splats it surely does not show.
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
	for k := range b.steep { // see ref.View.slopes: the Jacobian's slopes are limited to the picture and a margin
		margin := layout.JacobianMargin * 0.5 * size[k] / focal[k]
		slope := max(math.Abs(centre[k]/focal[k]+margin), math.Abs((size[k]-centre[k])/focal[k]+margin))
		b.steep[k] = focal[k] * math.Sqrt(1+slope*slope)
	}
	return b
}

// misses reports whether a splat of a width surely touches no pixel. The device computes in single precision: what that
// may be off is added. Fisheye pictures, and those that a lens bends, are said to miss only what is behind them, and
// those of a wide lens nothing. A NaN misses nothing.
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

// loadVisible takes what the rows of a picture may show to the device, if it has room for so many. again says that
// pictures that were flying did not fit, and that all of them are queued anew.
func (r *Renderer) loadVisible(c *scene.Camera, first, rows int) (fits, again bool, err error) {
	m := r.share
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

// loadBand takes what a band of a picture may show to the device. queued says that all flying pictures are queued anew,
// this one among them.
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
func (m *share) gather(ids []uint32, into *scene.Splats) {
	from, to := m.whole.Tensors(), into.Tensors()
	parallel.For((len(ids)+shareBlock-1)/shareBlock, func(block int) {
		for i := block * shareBlock; i < min((block+1)*shareBlock, len(ids)); i++ {
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
			ErrTooSmall, r.fullestRow(c), r.share.most),
			failure.RaiseMemory()+", draw larger pictures, whose rows show less each, or convert the model to fewer "+
				"splats ("+fault.Command("convert --max-splats N")+").")
	}
	for _, f := range e.programs.frames {
		if err := e.programs.wait(f); err != nil {
			return err
		}
	}
	if err := r.refit(min(2*e.setup.bands, e.setup.mostBands())); err != nil {
		return err
	}
	return r.requeue()
}

// fullestRow returns how many splats the fullest row of tiles of a picture may show: with room for so many the whole
// picture can be drawn.
func (r *Renderer) fullestRow(c *scene.Camera) (most int) {
	for first := 0; first < c.Height; first += layout.TileSize {
		rows := min(layout.TileSize, c.Height-first)
		most = max(most, len(r.share.visible(c, r.cfg.Near, r.cfg.widen(c), first, rows)))
	}
	return most
}

// Shared reports whether the model is larger than the device, so that what each picture shows is taken there anew.
func (r *Renderer) Shared() bool { return r.share != nil }

// free gives back what the share takes of the device.
func (m *share) free(dev *vk.Device) (err error) {
	if m != nil && !m.staging.IsZero() {
		err = dev.Free(m.staging.View)
		m.staging = vk.Slice[uint32]{}
	}
	return err
}

// newSharedRenderer is NewRenderer for a model that is larger than the device.
func (d *Device) newSharedRenderer(s *scene.Splats, cameras []scene.Camera, cfg RenderConfig, w renderNeeds,
	p *parts) (*Renderer, error) {
	for most := d.mostToRender(s.N, s.Degree, cameras, p); ; most = most * 3 / 4 {
		if most == 0 {
			return nil, fmt.Errorf("create renderer: %w: nothing is left for splats", ErrTooSmall)
		}
		e, err := newRenderEngine(d.dev, s.Degree, cameras, cfg)
		if err != nil {
			return nil, err
		}
		e.setup.model.setUnit(most)
		r := &Renderer{e: e, cfg: cfg, splats: s.N, atOnce: w.atOnce(d.host)}
		if r.share, err = e.loadShare(s, p, most); err == nil {
			err = e.memory.buildToFit()
		}
		if err == nil {
			return r, nil
		}
		if err = errors.Join(err, r.share.free(d.dev), e.close()); !IsShortage(err) {
			return nil, err
		}
	}
}
