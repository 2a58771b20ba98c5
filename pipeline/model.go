package pipeline

import (
	"errors"
	"fmt"

	"vksplat/scene"
	"vksplat/vk"
)

// defaultChunk is the number of splats of a chunk where limits allow: 45 MiB at SH degree 3. Not a power of two, so that the rows of a chunk, which a
// kernel walks from end to end, do not all fall on the same few cache sets and memory channels.
const defaultChunk = 65536 - 64

// model is the scene on the device: a list of equal chunks. Growth appends chunks and copies nothing.
type model struct {
	dev *vk.Device
	chunkRows
	chunkSplats int                 // splats of a chunk
	chunks      []vk.Slice[float32] // each [rows][chunkSplats]
}

// maxBinding returns the largest buffer, in bytes, that the device can allocate at once and bind whole.
func maxBinding(dev *vk.Device) int64 {
	l := dev.Info().Limits
	return min(l.MaxStorageBufferRange, l.MaxMemoryAllocationSize, l.MaxBufferSize)
}

// newModel makes an empty model in full precision with chunks of the size that suits most devices.
func newModel(dev *vk.Device, degree int) (*model, error) {
	m := &model{dev: dev, chunkRows: rowsOf(degree, PrecisionFull)}
	m.setChunk(0, 0)
	if most := maxBinding(dev); m.chunkBytes() > most {
		return nil, fmt.Errorf("pipeline: create model: a chunk of %d splats takes %d bytes, the device binds at most %d at once", m.chunkSplats, m.chunkBytes(), most)
	}
	return m, nil
}

// Bounds on chunks.
const (
	fewChunks     = 24        // that a model at its ceiling is made of, where the bounds below allow: moving splats takes a dispatch for each pair of chunks
	smallestChunk = 33 * 64   // splats: 1.5 MB at SH degree 3
	largestChunk  = 256 << 20 // bytes
	largeBudget   = 1024      // chunks in a budget that make it so large that what stands empty in one does not matter
)

// setChunk chooses the size of chunks for a model that may grow to ceiling splats (0: any number) in a budget of bytes. The model must be empty. Small
// ceilings and budgets get small chunks, so that little stands empty. Chunks are larger than the default only where that is less than 1/1024 of the budget:
// a model that fills such a device has more chunks then, but each of them as much work.
func (m *model) setChunk(ceiling int, budget int64) {
	m.chunkSplats = defaultChunk
	if ceiling > 0 {
		most := max(defaultChunk, int(min(budget/largeBudget, largestChunk)/m.splatBytes()))
		m.chunkSplats = oddRows(min(max((ceiling+fewChunks-1)/fewChunks, smallestChunk), most))
	}
	for limit := maxBinding(m.dev); m.chunkSplats > 256 && m.chunkBytes() > limit; {
		m.chunkSplats = m.chunkSplats / 2 &^ 63
	}
}

// oddRows rounds a number of splats up to an odd multiple of 64: see defaultChunk.
func oddRows(n int) int { return ((n+63)/64 | 1) * 64 }

func (m *model) chunkBytes() int64 { return m.splatBytes() * int64(m.chunkSplats) }
func (m *model) capacity() int     { return len(m.chunks) * m.chunkSplats }

// reserve appends chunks until n splats fit. New chunks are zero.
func (m *model) reserve(n int) error {
	for m.capacity() < n {
		chunk, err := vk.Make[float32](m.dev, vk.DeviceLocal, m.rows()*m.chunkSplats, fmt.Sprintf("chunk %d", len(m.chunks)))
		if err != nil {
			return err
		}
		r := vk.NewRecorder(m.dev)
		r.Fill(chunk.View, 0)
		if err := runOnce(m.dev, r, "zero chunk"); err != nil {
			return errors.Join(err, m.dev.Free(chunk.View))
		}
		m.chunks = append(m.chunks, chunk)
	}
	return nil
}

// asOneChunk returns a model of as many splats in a single chunk, which is not there: to measure the scratch memory of a refinement, whose list grows with
// the square of the number of chunks while its scratch memory does not.
func (m *model) asOneChunk() *model {
	return &model{dev: m.dev, chunkRows: m.chunkRows, chunkSplats: m.capacity(), chunks: m.chunks[:min(1, len(m.chunks))]}
}

// dropEmpty frees the last chunk if none of the first n splats is in it.
func (m *model) dropEmpty(n int) (dropped bool, err error) {
	last := len(m.chunks) - 1
	if last < 0 || last*m.chunkSplats < n {
		return false, nil
	}
	c := m.chunks[last]
	m.chunks = m.chunks[:last]
	return true, m.dev.Free(c.View)
}

// mostStaging is about how many bytes the staging memory of a model takes.
const mostStaging = 4 << 20

// stagingRows returns how many rows of a chunk are moved at once.
func (m *model) stagingRows() int { return min(max(1, mostStaging/4/m.chunkSplats), m.stored) }

// stagingBytes returns what moving the model up or down takes.
func (m *model) stagingBytes() int64 { return 4 * int64(m.stagingRows()) * int64(m.chunkSplats) }

// upload makes s, whose degree is at most the model's, the model's splats; moments and statistics become zero. It goes through staging memory, some rows of
// a chunk at a time.
func (m *model) upload(s *scene.Splats) error {
	if err := m.reserve(s.N); err != nil {
		return err
	}
	step := m.stagingRows()
	staging, err := vk.Make[uint32](m.dev, vk.Upload, step*m.chunkSplats, "model staging")
	if err != nil {
		return err
	}
	defer m.dev.Free(staging.View)
	for c := 0; c*m.chunkSplats < s.N; c++ {
		first := c * m.chunkSplats
		count := min(m.chunkSplats, s.N-first)
		for row := 0; row < m.stored; row += step {
			some := min(step, m.stored-row)
			words := vk.Host(staging)[:some*m.chunkSplats]
			clear(words)
			for r := range some {
				m.put(s, row+r, first, words[r*m.chunkSplats:][:count])
			}
			rec := vk.NewRecorder(m.dev)
			rec.Copy(m.chunks[c].At(row*m.chunkSplats, len(words)).View, staging.At(0, len(words)).View)
			if err := runOnce(m.dev, rec, "write model"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *model) close() (err error) {
	for _, c := range m.chunks {
		err = errors.Join(err, m.dev.Free(c.View))
	}
	m.chunks = nil
	return err
}
