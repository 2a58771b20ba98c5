package pipeline

import (
	"errors"
	"fmt"

	"vksplat/pipeline/checkpoint"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// model is the scene on the device: a list of chunks, each of a whole number of units. Growth appends a chunk and
// copies nothing.
type model struct {
	dev *vk.Device
	layout.Rows
	unit   int // splats
	growth int // splats by which the model grows at least
	chunks []chunk
	pages  *pages // in place of chunks, where pictures show parts of a model; nil otherwise
}

// chunk is a run of splats, [rows][splats].
type chunk struct {
	vk.Slice[float32]
	first  int // splat
	splats int
}

// maxBinding returns the largest buffer, in bytes, that the device can allocate at once and bind whole.
func maxBinding(dev *vk.Device) int64 {
	l := dev.Info().Limits
	return min(l.MaxStorageBufferRange, l.MaxMemoryAllocationSize, l.MaxBufferSize)
}

// newModel makes an empty model in full precision with chunks of the size that suits most devices.
func newModel(dev *vk.Device, degree int) (*model, error) {
	m := &model{dev: dev, Rows: layout.RowsOf(degree, false)}
	m.setUnit(0)
	if most := maxBinding(dev); m.unitBytes() > most {
		return nil, fmt.Errorf("create model: a chunk of %d splats takes %d bytes, the device binds at most %d at once",
			m.unit, m.unitBytes(), most)
	}
	return m, nil
}

// Bounds on units and chunks. Kernels that work on parameters run once for each chunk, and moving splats takes a
// dispatch for each pair of chunks.
const (
	manyUnits    = 512       // that a model at its ceiling is made of, where the bounds below allow
	smallestUnit = 33 * 64   // splats: 1.5 MB at SH degree 3
	largestUnit  = 255 * 64  // 12 MB
	fewChunks    = 24        // a model at its ceiling has about as many at most
	largestChunk = 256 << 20 // bytes
	growthParts  = 6         // a model grows by this part of it at least, or by a chunk as large as they get
	fewerParts   = 2         // the same where memory is plentiful
	plenty       = 4         // times the model is left then
)

// setUnit chooses the size of units, and by how much to grow, for a model that may grow to ceiling splats (0: any
// number). The model must be empty. Small ceilings get small units, so that little stands empty. Units are no multiples
// of large powers of two, so that the rows of a chunk, which a kernel walks from end to end, do not all fall on the
// same few cache sets and memory channels.
func (m *model) setUnit(ceiling int) {
	m.unit, m.growth = largestUnit, 2*largestUnit
	if ceiling > 0 {
		m.unit = oddRows(min(max((ceiling+manyUnits-1)/manyUnits, smallestUnit), largestUnit))
		m.growth = min(ceiling/fewChunks, m.growth)
	}
	for limit := maxBinding(m.dev); m.unit > 256 && m.unitBytes() > limit; {
		m.unit = m.unit / 2 &^ 63
	}
}

// oddRows rounds a number of splats up to an odd multiple of 64: see setUnit.
func oddRows(n int) int { return ((n+63)/64 | 1) * 64 }

func (m *model) unitBytes() int64 { return m.SplatBytes() * int64(m.unit) }

// units returns how many units n splats take.
func (m *model) units(n int) int { return (n + m.unit - 1) / m.unit }

// mostUnits returns how many units a chunk has at most.
func (m *model) mostUnits() int {
	return int(max(1, min(largestChunk, maxBinding(m.dev))/m.unitBytes()))
}

// capacity returns how many splats the chunks hold, or of parts how many a picture shows at most.
func (m *model) capacity() int {
	if m.pages != nil {
		return m.pages.most
	}
	if len(m.chunks) == 0 {
		return 0
	}
	last := m.chunks[len(m.chunks)-1]
	return last.first + last.splats
}

// growBy returns the divisor of the step by which the model grows: 1, which doubles it, if its final size is known
// (exact), fewerParts if not, and growthParts if memory may get short. Each chunk costs every step its dispatches, so
// large steps are fast; but a chunk that is half empty cannot be freed.
func (m *model) growBy(exact bool) int {
	left := m.dev.Budget() - m.dev.Stats().Allocated
	switch {
	case left < plenty*m.SplatBytes()*int64(m.capacity()):
		return growthParts
	case exact:
		return 1
	}
	return fewerParts
}

// ample returns the capacity to grow to, by such a part, where n splats do not fit. The chunk has an odd number of
// units: see setUnit.
func (m *model) ample(n, parts int) int {
	more := min(max(m.capacity()/parts, m.growth), m.mostUnits()*m.unit)
	return m.capacity() + (m.units(max(n-m.capacity(), more))|1)*m.unit
}

// reserve appends chunks until n splats fit: few, or smaller ones if memory is fragmented.
func (m *model) reserve(n int) error { return m.extend(n, true) }

// extend appends as few chunks as possible until n splats fit or, with pieces, smaller ones where these find no room.
// New chunks are zero.
func (m *model) extend(n int, pieces bool) error {
	most := m.mostUnits()
	for m.capacity() < n {
		units := min(m.units(n-m.capacity()), most)
		c := chunk{first: m.capacity(), splats: units * m.unit}
		var err error
		if c.Slice, err = vk.Make[float32](m.dev, vk.DeviceLocal, m.NRows()*c.splats,
			fmt.Sprintf("chunk %d", len(m.chunks))); err != nil {
			if pieces && errors.Is(err, vk.ErrOutOfMemory) && units > 1 {
				most = units / 2
				continue
			}
			return err
		}
		r := vk.NewRecorder(m.dev)
		r.Fill(c.View, 0)
		if err := m.dev.RunOnce(r, "zero chunk"); err != nil {
			return errors.Join(err, m.dev.Free(c.View))
		}
		m.chunks = append(m.chunks, c)
	}
	return nil
}

// planned returns a model of phantom memory, in as few chunks as possible.
func (m *model) planned(units int) *model {
	p := &model{dev: m.dev, Rows: m.Rows, unit: m.unit, growth: m.growth, pages: m.pages}
	for units > 0 && m.pages == nil {
		n := min(units, m.mostUnits())
		p.chunks = append(p.chunks, chunk{phantom[float32](m.dev, m.NRows()*n*m.unit, 4), p.capacity(), n * m.unit})
		units -= n
	}
	return p
}

// asOneChunk returns a model of as many splats in a single phantom chunk: to measure the scratch memory of a
// refinement, whose list of passes grows with the square of the number of chunks while its scratch memory does not.
func (m *model) asOneChunk() *model {
	one := &model{dev: m.dev, Rows: m.Rows, unit: m.unit, growth: m.growth}
	if len(m.chunks) > 0 {
		one.chunks = []chunk{{m.chunks[0].Slice, 0, m.capacity()}}
	}
	return one
}

// dropEmpty frees the last chunk if none of the first n splats is in it.
func (m *model) dropEmpty(n int) (dropped bool, err error) {
	last := len(m.chunks) - 1
	if last < 0 || m.chunks[last].first < n {
		return false, nil
	}
	c := m.chunks[last]
	m.chunks = m.chunks[:last]
	return true, m.dev.Free(c.View)
}

// mostStaging is about how many bytes the staging memory of a model takes.
const mostStaging = 4 << 20

// stagingRows returns how many rows of a unit are moved at once.
func (m *model) stagingRows() int { return min(max(1, mostStaging/4/m.unit), m.Stored) }

func (m *model) stagingBytes() int64 { return 4 * int64(m.stagingRows()) * int64(m.unit) }

// upload makes s, whose degree is at most the model's, the model's splats; moments and statistics become zero. It goes
// through staging memory, some rows of a unit at a time.
func (m *model) upload(s *scene.Splats) error {
	if err := m.reserve(s.N); err != nil {
		return err
	}
	staging, err := vk.Make[uint32](m.dev, vk.Upload, m.stagingRows()*m.unit, "model staging")
	if err != nil {
		return err
	}
	defer m.dev.Free(staging.View)
	for _, c := range m.chunks {
		for at := 0; at < c.splats && c.first+at < s.N; at += m.unit {
			if err := m.uploadUnit(s, c, at, staging); err != nil {
				return err
			}
		}
	}
	return nil
}

// uploadUnit writes the unit of c that begins at its column at.
func (m *model) uploadUnit(s *scene.Splats, c chunk, at int, staging vk.Slice[uint32]) error {
	first, step := c.first+at, m.stagingRows()
	count := min(m.unit, s.N-first)
	words := vk.Host(staging)
	for row := 0; row < m.Stored; row += step {
		some := min(step, m.Stored-row)
		clear(words[:some*m.unit])
		r := vk.NewRecorder(m.dev)
		for k := range some {
			m.put(s, row+k, first, words[k*m.unit:][:count])
			r.Copy(c.At((row+k)*c.splats+at, m.unit).View, staging.At(k*m.unit, m.unit).View)
		}
		if err := m.dev.RunOnce(r, "write model"); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) close() (err error) {
	for _, c := range m.chunks {
		err = errors.Join(err, m.dev.Free(c.View))
	}
	m.chunks = nil
	return errors.Join(err, m.pages.free(m.dev))
}

// parts returns the first n splats where they are.
func (m *model) parts(n int) (list []checkpoint.Part) {
	for _, c := range m.chunks {
		if c.first < n {
			list = append(list, checkpoint.Part{Rows: c.Slice, Count: min(c.splats, n-c.first), Stride: c.splats})
		}
	}
	return list
}
