package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// pages is room on the device for parts of a model that is larger. A page is [rows][PageSplats] words, so that it is
// one run of memory; the last one of a part is filled up with zeros, which no view sees. What a picture shows is a list
// of pages, so that neither their places nor what else is there decides a byte of it.
type pages struct {
	most   int // splats that a picture shows at most, whole pages
	n      int // pages there are
	words  int // of a page
	each   int // pages of a buffer, but for the last
	chunks []vk.Slice[float32]
	left   []pageRun // that are free, in order, no two of them adjacent
}

type pageRun struct{ first, n int }

const (
	// PageSplats are those of a page, and of a workgroup of project_pages: a part takes the room of whole pages, which
	// counts against the most splats of a picture.
	PageSplats = 128
	// words at a multiple of which the pages of a list begin, so that every device can bind them
	pageListAlign = 64
	// largest buffer of pages, in bytes, where the device has no lower limit: project_pages runs once for each buffer
	mostPageChunk = 1 << 30
)

func pagesOf(n int) int { return (n + PageSplats - 1) / PageSplats }

// plannedPages returns n phantom pages, of which a picture shows at most most splats.
func plannedPages(dev *vk.Device, rows layout.Rows, n, most int) *pages {
	m := &pages{most: pagesOf(most) * PageSplats, n: n, words: rows.Stored * PageSplats}
	m.each = int(max(1, min(mostPageChunk, maxBinding(dev))/(4*int64(m.words))))
	for at := 0; at < n; at += m.each {
		m.chunks = append(m.chunks, phantom[float32](dev, min(m.each, n-at)*m.words, 4))
	}
	return m
}

func (m *pages) bytes() int64 { return 4 * int64(m.n) * int64(m.words) }

func (m *pages) allocate(dev *vk.Device) error {
	planned := m.chunks
	m.chunks = nil
	for i, c := range planned {
		made, err := vk.Make[float32](dev, vk.DeviceLocal, c.N(), fmt.Sprintf("pages %d", i))
		if err != nil {
			return errors.Join(err, m.free(dev))
		}
		m.chunks = append(m.chunks, made)
	}
	m.left = []pageRun{{0, m.n}}
	return nil
}

func (m *pages) free(dev *vk.Device) (err error) {
	if m == nil {
		return nil
	}
	for _, c := range m.chunks {
		err = errors.Join(err, dev.Free(c.View))
	}
	m.chunks = nil
	return err
}

func (m *pages) unused() (n int) {
	for _, r := range m.left {
		n += r.n
	}
	return n
}

// acquire takes n free pages, which there are, from the first run that has as many, else from the longest ones.
func (m *pages) acquire(n int) (runs []pageRun) {
	if i := slices.IndexFunc(m.left, func(r pageRun) bool { return r.n >= n }); i >= 0 {
		return append(runs, m.cut(i, n))
	}
	for n > 0 {
		longest := 0
		for i, r := range m.left {
			if r.n > m.left[longest].n {
				longest = i
			}
		}
		r := m.cut(longest, min(n, m.left[longest].n))
		runs, n = append(runs, r), n-r.n
	}
	return runs
}

// cut removes the first n pages of free run i.
func (m *pages) cut(i, n int) pageRun {
	r := pageRun{m.left[i].first, n}
	m.left[i].first += n
	if m.left[i].n -= n; m.left[i].n == 0 {
		m.left = slices.Delete(m.left, i, i+1)
	}
	return r
}

func (m *pages) release(runs []pageRun) {
	for _, r := range runs {
		i, _ := slices.BinarySearchFunc(m.left, r.first,
			func(l pageRun, at int) int { return cmp.Compare(l.first, at) })
		m.left = slices.Insert(m.left, i, r)
		if i+1 < len(m.left) && r.first+r.n == m.left[i+1].first {
			m.left[i].n += m.left[i+1].n
			m.left = slices.Delete(m.left, i+1, i+2)
		}
		if i > 0 && m.left[i-1].first+m.left[i-1].n == r.first {
			m.left[i-1].n += m.left[i].n
			m.left = slices.Delete(m.left, i, i+1)
		}
	}
}

// at returns the memory of pages from one on, at most n, and how many these are: those that lie in its buffer.
func (m *pages) at(page, n int) (vk.View, int) {
	c, first := m.chunks[page/m.each], page%m.each
	n = min(n, m.each-first)
	return c.At(first*m.words, n*m.words).View, n
}

// listHead returns how many words of a list come before its pages: the number of splats, and the size of the dispatch
// for each buffer.
func (m *pages) listHead() int {
	return (1 + 3*len(m.chunks) + pageListAlign - 1) / pageListAlign * pageListAlign
}

// listWords returns the length of a frame's list.
func (m *pages) listWords() int { return m.listHead() + m.most/PageSplats }

// listed writes which pages a part of a picture shows, and returns what sets the number of splats before it is drawn.
// Nothing is dispatched for buffers that none of the pages lie in: some devices bind little, and have many buffers.
func (s *setup) listed(f *frame, list []uint32) stagedPhoto {
	m, words := s.model.pages, vk.Host(f.part.list)
	words[0] = uint32(PageSplats * len(list))
	grids := vk.Host(vk.Cast[[3]uint32](f.part.list.At(1, 3*len(m.chunks)).View))
	clear(grids)
	last := -1
	for _, page := range list {
		if c := int(page) / m.each; c != last {
			grids[c], last = vk.Groups(len(list)).Words(), c
		}
	}
	copy(words[m.listHead():], list)
	return stagedPhoto{dst: s.counters.At(layout.NSplats, 1).View, src: f.part.list.At(0, 1).View}
}

// projectPages culls and projects the splats of the frame's list of pages, buffer by buffer.
func (v *view) projectPages(params vk.Slice[layout.StepParams]) {
	m := v.s.model.pages
	for i, c := range m.chunks {
		v.r.Dispatch(&shaders.ProjectPages{
			Params: params, Counters: v.s.counters, PageList: v.f.part.list.At(m.listHead(),
				m.most/PageSplats), Chunk: c,
			Shapes: v.shapes, Paints: v.paints,
			DepthKeys: v.depthKeys,
			Push: shaders.ProjectPagesPush{FirstPage: uint32(i * m.each), NPages: uint32(c.N() / m.words),
				PageWords: uint32(m.words), ChunkSplats: PageSplats},
		}, vk.Indirect(v.f.part.list.At(1+3*i, 3).View))
	}
}
