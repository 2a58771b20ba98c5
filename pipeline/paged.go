package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"vksplat/internal/fault"
	"vksplat/internal/parallel"
	"vksplat/pipeline/failure"
	"vksplat/scene"
	"vksplat/vk"
)

// Parts is a model in parts, of which a picture shows some: leaves of a tree, each in several levels of detail. A part
// has a number. Calls come from one goroutine at a time.
type Parts interface {
	Degree() int
	Sizes() []int // splats of each part
	// Choose returns the parts that a picture shows, in the order in which they are drawn, which have whole pages for
	// most splats at most. Nothing but the camera and most decides about it.
	Choose(c *scene.Camera, most int) ([]int, error)
	// Ahead replaces the list of parts that are going to be read, the first ones first.
	Ahead(parts []int)
	// Read returns the splats of a part, which do not change afterwards.
	Read(part int) (*scene.Splats, error)
	LeastRAM() int64      // bytes that reading takes at least, about
	LimitRAM(bytes int64) // bounds it: what is left of that is for parts that are read ahead
}

// paged keeps Parts on the device for a Renderer: those that a picture shows are there while it is drawn, and stay
// until others need the room. Copies to the device and pictures run in the order in which they are queued, so that
// pages of pictures in flight may be overwritten.
type paged struct {
	Parts
	dev      *vk.Device
	room     *pages
	limit    int // splats of a picture
	sizes    []int
	where    [][]pageRun // of each part; nil: it is not on the device
	used     []int       // by part, the number of the last picture that showed it
	seen     []int       // by part, the number of the last list with it, see ahead
	pictures int
	lists    int
	there    []int      // parts on the device
	coming   []expected // pictures that will be added, in their order
	staging  [pageStagings]pageStaging
	turn     int // the staging that is being filled
	staged   int // pages in it
	copies   int // copiers of it that are in use
	least    int // splats of a picture
	most     int
	drawn    bool
}

// expected is a picture that is going to be added.
type expected struct {
	camera scene.Camera
	parts  []int
}

const (
	pageStagings    = 3       // on their way at a time
	pageStagingSize = 8 << 20 // bytes of one
	pageCopiers     = 32      // copies that fill the pages of one
	// MostShown is how many splats of a model in parts a picture shows at most, unless another number is asked for.
	MostShown = 8 << 20
	// mostPartsRAM bounds the bytes of RAM for parts of a model that are read ahead.
	mostPartsRAM = 4 << 30
)

// pageStaging is memory through which pages are uploaded.
type pageStaging struct {
	words      vk.Slice[uint32]
	copiers    [pageCopiers]*vk.Copier
	submission *vk.Submission
	ticket     vk.Ticket
}

func (p *paged) allocate() error {
	if err := p.room.allocate(p.dev); err != nil {
		return err
	}
	for i := range p.staging {
		s := &p.staging[i]
		var err error
		if s.words, err = vk.Make[uint32](p.dev, vk.Upload, p.room.words*p.room.staged(), "page staging"); err != nil {
			return err
		}
		s.submission = p.dev.NewSubmission()
		for k := range s.copiers {
			if s.copiers[k], err = p.dev.NewCopier(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *pages) staged() int { return min(m.n, max(1, pageStagingSize/(4*m.words))) }

func (m *pages) stagingBytes() int64 { return pageStagings * 4 * int64(m.words) * int64(m.staged()) }

// close frees what allocate made but for the room, which is the model's.
func (p *paged) close() (err error) {
	if p == nil {
		return nil
	}
	for i := range p.staging {
		s := &p.staging[i]
		for _, c := range s.copiers {
			if c != nil {
				err = errors.Join(err, c.Close())
			}
		}
		if !s.words.IsZero() {
			err = errors.Join(err, p.dev.Free(s.words.View))
		}
		*s = pageStaging{}
	}
	return err
}

// expect notes that a picture is going to be added after those that were noted before. One that cannot be drawn is an
// error when it is added, and not before.
func (p *paged) expect(c scene.Camera) {
	if parts, err := p.Choose(&c, p.limit); err == nil {
		p.coming = append(p.coming, expected{c, parts})
	}
}

func (p *paged) choose(c *scene.Camera) (parts []int, err error) {
	if len(p.coming) > 0 && p.coming[0].camera == *c {
		parts = p.coming[0].parts
		p.coming = p.coming[1:]
	} else if parts, err = p.Choose(c, p.limit); err != nil {
		return nil, fmt.Errorf("render %s: %w", c.Name, err)
	}
	n := 0
	for _, part := range parts {
		n += p.sizes[part]
	}
	if p.most = max(p.most, n); !p.drawn || n < p.least {
		p.least = n
	}
	p.drawn = true
	return parts, nil
}

// load brings the parts of a picture to the device and lists their pages.
func (p *paged) load(d *drawing) error {
	p.pictures++
	need := 0
	for _, part := range d.parts {
		p.used[part] = p.pictures
		if p.where[part] == nil {
			need += pagesOf(p.sizes[part])
		}
	}
	p.makeRoom(need)
	p.Ahead(p.missing(d.parts))
	for _, part := range d.parts {
		if p.where[part] != nil {
			continue
		}
		s, err := p.Read(part)
		if err != nil {
			return err
		}
		p.where[part], p.there = p.room.acquire(pagesOf(s.N)), append(p.there, part)
		if err := p.upload(s, p.where[part]); err != nil {
			return err
		}
	}
	if err := p.flush(); err != nil {
		return err
	}
	d.pages = d.pages[:0]
	for _, part := range d.parts {
		for _, r := range p.where[part] {
			for page := range r.n {
				d.pages = append(d.pages, uint32(r.first+page))
			}
		}
	}
	return nil
}

// makeRoom frees pages until there are need of them: those of parts that no picture has shown for the longest time.
func (p *paged) makeRoom(need int) {
	left := p.room.unused()
	if left >= need {
		return
	}
	slices.SortFunc(p.there, func(a, b int) int { return cmp.Or(cmp.Compare(p.used[a], p.used[b]), cmp.Compare(a, b)) })
	gone := 0
	for ; left < need && gone < len(p.there) && p.used[p.there[gone]] < p.pictures; gone++ {
		part := p.there[gone]
		left += pagesOf(p.sizes[part])
		p.room.release(p.where[part])
		p.where[part] = nil
	}
	p.there = slices.Delete(p.there, 0, gone)
}

// missing lists what is not on the device of some parts and of those of coming pictures, in the order in which it is
// needed.
func (p *paged) missing(parts []int) (list []int) {
	p.lists++
	add := func(parts []int) {
		for _, part := range parts {
			if p.where[part] == nil && p.seen[part] != p.lists {
				p.seen[part] = p.lists
				list = append(list, part)
			}
		}
	}
	add(parts)
	for i := range p.coming {
		add(p.coming[i].parts)
	}
	return list
}

// upload fills the pages of a part: flush queues the last of the copies.
func (p *paged) upload(s *scene.Splats, to []pageRun) error {
	first := 0 // page of the part
	for _, run := range to {
		for run.n > 0 {
			st := &p.staging[p.turn]
			if p.copies == 0 {
				if err := p.dev.Wait(st.ticket); err != nil {
					return err
				}
				st.submission.Reset()
			}
			view, some := p.room.at(run.first, min(run.n, p.room.staged()-p.staged))
			from := st.words.At(p.staged*p.room.words, some*p.room.words)
			c := st.copiers[p.copies]
			if err := c.Record(view, from.View); err != nil {
				return err
			}
			st.submission.Add(c)
			words := vk.Host(from)
			parallel.For(some, func(i int) {
				fillPage(words[i*p.room.words:][:p.room.words], s, (first+i)*PageSplats)
			})
			run.first, run.n, first = run.first+some, run.n-some, first+some
			p.staged, p.copies = p.staged+some, p.copies+1
			if p.staged == p.room.staged() || p.copies == pageCopiers {
				if err := p.flush(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (p *paged) flush() (err error) {
	if p.copies > 0 {
		st := &p.staging[p.turn]
		st.ticket, err = p.dev.Submit(st.submission)
		p.turn, p.staged, p.copies = (p.turn+1)%pageStagings, 0, 0
	}
	return err
}

// fillPage makes a page of the splats of s from one on.
func fillPage(words []uint32, s *scene.Splats, first int) {
	n := min(PageSplats, s.N-first)
	row := 0
	for _, t := range s.Tensors() {
		for k := range t.Width {
			to, at := words[row*PageSplats:(row+1)*PageSplats], t.Width*first+k
			for i := range n {
				to[i] = math.Float32bits(t.Data[at])
				at += t.Width
			}
			clear(to[n:])
			row++
		}
	}
	clear(words[row*PageSplats:])
}

// Expect says that the view of a camera will be added after those that were named before, so that what it shows of a
// model in parts is read in time. Pictures do not depend on it.
func (r *Renderer) Expect(c scene.Camera) {
	if r.paged != nil {
		r.paged.expect(c)
	}
}

// Shown returns how many splats of a model in parts were drawn for a picture, at least and at most.
func (r *Renderer) Shown() (least, most int) {
	if r.paged == nil {
		return r.splats, r.splats
	}
	return r.paged.least, r.paged.most
}

// pagedNeeds returns the needs of n pages of a model, of which a picture shows at most most splats.
func (p *renderPlan) pagedNeeds(n, most int) (w renderNeeds, err error) {
	s, err := p.setup()
	if err != nil {
		return w, err
	}
	m := plannedPages(p.d.dev, s.model.Rows, n, most)
	s.model.pages = m
	return p.needsOf(s, 0, m.bytes(), m.stagingBytes()+rendersInFlight*4*int64(m.listWords()))
}

// fitsPaged reports whether there is room for n pages of a model, of which a picture shows at most most splats, if a
// quarter of the device is left for what pictures need besides splats.
func (p *renderPlan) fitsPaged(n, most int) bool {
	w, err := p.pagedNeeds(n, most)
	return err == nil && w.withSpare() <= p.d.Budget()
}

// spareFactor is the device's memory divided by that of splats that leave a quarter of it.
const spareFactor = 4.0 / 3

// withSpare returns the least of the device that leaves that much.
func (w renderNeeds) withSpare() int64 { return roundMiB(int64(float64(w.device) * spareFactor)) }

// largestThat returns the largest number up to most that fits, where all smaller ones do.
func largestThat(most int, fits func(n int) bool) int {
	return sort.Search(most, func(n int) bool { return !fits(n + 1) })
}

// MostShown returns how many splats of a model in parts pictures show unless another number is asked for: so that as
// many again have room besides. It is a page at least, even if that has no room.
func (d *Device) MostShown(m Parts, cameras []scene.Camera, cfg RenderConfig) int {
	all, p := allPages(m), &renderPlan{d, m.Degree(), cameras, cfg}
	return PageSplats * max(1, largestThat(min(all, MostShown/PageSplats), func(k int) bool {
		return p.fitsPaged(min(all, 2*k), k*PageSplats)
	}))
}

func allPages(m Parts) (n int) {
	for _, size := range m.Sizes() {
		n += pagesOf(size)
	}
	return n
}

// NewPartsRenderer is NewRenderer for a model in parts, of which a picture shows at most most splats.
func NewPartsRenderer(d *Device, m Parts, most int, cameras []scene.Camera, cfg RenderConfig) (*Renderer, error) {
	p, err := newRenderPlan(d, m.Degree(), cameras, cfg)
	if err != nil {
		return nil, err
	}
	all, least := allPages(m), min(allPages(m), pagesOf(most))
	lower := "lower " + fault.Setting("max-splats")
	w, err := p.pagedNeeds(least, most)
	if err != nil { // no memory helps
		return nil, fault.WithHint(fmt.Errorf("create renderer: %w: pictures of %d splats: %v", ErrTooSmall, most, err),
			failure.AnyOf(lower, cfg.Smaller))
	}
	w.device, w.kept = w.withSpare(), cfg.Kept+m.LeastRAM()
	if err := p.checkRAM(most, w); err != nil {
		return nil, err
	}
	if w.device > d.Budget() {
		return nil, p.tooFewBytes(most, w, lower)
	}
	n := largestThat(all, func(k int) bool { return p.fitsPaged(k, most) })
	for ; ; n = max(least, n*3/4) {
		if w, err = p.pagedNeeds(n, most); err != nil {
			return nil, err
		}
		ahead := max(m.LeastRAM(), min(d.host/3, mostPartsRAM, w.roomIn(d.host)-w.picture-cfg.Kept))
		m.LimitRAM(ahead)
		w.kept = cfg.Kept + ahead
		r, err := p.newPaged(m, n, most, w)
		if !IsShortage(err) || n == least {
			return r, p.tooSmall(most, w, err, lower)
		}
	}
}

func (p *renderPlan) newPaged(m Parts, n, most int, w renderNeeds) (*Renderer, error) {
	r, err := p.newRenderer(most, w)
	if err != nil {
		return nil, err
	}
	s, sizes := r.e.setup, m.Sizes()
	s.model.pages = plannedPages(s.dev, s.model.Rows, n, most)
	r.paged = &paged{Parts: m, dev: s.dev, room: s.model.pages, limit: most, sizes: sizes,
		where: make([][]pageRun, len(sizes)), used: make([]int, len(sizes)), seen: make([]int, len(sizes))}
	if err = r.paged.allocate(); err == nil {
		err = r.e.fitPictures(s.model.capacity())
	}
	if err == nil {
		err = errors.Join(s.setCounters(0), r.e.memory.buildToFit())
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}
