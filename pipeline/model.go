package pipeline

import (
	"errors"
	"fmt"

	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// defaultChunk is the number of splats of a chunk where limits allow: 45 MiB at SH degree 3. Not a power of two, so that the rows of a chunk, which a
// kernel walks from end to end, do not all fall on the same few cache sets and memory channels.
const defaultChunk = 65536 - 64

// model is the scene on the device: a list of equal chunks. Growth appends chunks and copies nothing.
type model struct {
	dev         *vk.Device
	degree      int
	nParams     int                 // parameter rows P = 11 + 3 (degree+1)^2
	chunkSplats int                 // splats of a chunk
	chunks      []vk.Slice[float32] // each [3P + STAT_ROWS][chunkSplats]: see layout.Row*
}

// maxBinding returns the largest buffer, in bytes, that the device can allocate at once and bind whole.
func maxBinding(dev *vk.Device) int64 {
	l := dev.Info().Limits
	return min(l.MaxStorageBufferRange, l.MaxMemoryAllocationSize, l.MaxBufferSize)
}

// paramRows returns P for an SH degree.
func paramRows(degree int) int { return layout.RowSh + 3*(degree+1)*(degree+1) }

// newModel chooses the chunk size for the device.
func newModel(dev *vk.Device, degree int) (*model, error) {
	m := &model{dev: dev, degree: degree, nParams: paramRows(degree), chunkSplats: defaultChunk}
	most := maxBinding(dev)
	for m.chunkSplats > 256 && m.chunkBytes() > most {
		m.chunkSplats = m.chunkSplats / 2 &^ 63
	}
	if m.chunkBytes() > most {
		return nil, fmt.Errorf("pipeline: create model: a chunk of %d splats takes %d bytes, the device binds at most %d at once", m.chunkSplats, m.chunkBytes(), most)
	}
	return m, nil
}

func (m *model) rows() int         { return 3*m.nParams + layout.StatRows }
func (m *model) chunkBytes() int64 { return int64(m.rows()) * int64(m.chunkSplats) * 4 }
func (m *model) capacity() int     { return len(m.chunks) * m.chunkSplats }

// reserve appends chunks until n splats fit. New chunks are zero.
func (m *model) reserve(n int) error {
	for m.capacity() < n {
		chunk, err := vk.Make[float32](m.dev, vk.DeviceLocal, m.rows()*m.chunkSplats, fmt.Sprintf("chunk %d", len(m.chunks)))
		if err != nil {
			return err
		}
		m.chunks = append(m.chunks, chunk)
		r := vk.NewRecorder(m.dev)
		r.Fill(chunk.View, 0)
		if err := runOnce(m.dev, r, "zero chunk"); err != nil {
			return err
		}
	}
	return nil
}

// rowValue returns parameter row r of splat i of s.
func rowValue(s *scene.Splats, r, i int) *float32 {
	switch {
	case r < layout.RowQuats:
		return &s.Means[3*i+r]
	case r < layout.RowLogScales:
		return &s.Quats[4*i+r-layout.RowQuats]
	case r < layout.RowLogitOpacity:
		return &s.LogScales[3*i+r-layout.RowLogScales]
	case r < layout.RowSh:
		return &s.LogitOpacities[i]
	}
	return &s.SH[i*(len(s.SH)/s.N)+r-layout.RowSh]
}

// transfer runs f over every chunk with its staging memory: between host and device when upload, back otherwise.
func (m *model) transfer(n int, kind vk.MemoryKind, each func(chunk, first, count int, rows []float32)) error {
	staging, err := vk.Make[float32](m.dev, kind, m.nParams*m.chunkSplats, "model staging")
	if err != nil {
		return err
	}
	defer m.dev.Free(staging.View)
	host := vk.Host(staging)
	for c := 0; c*m.chunkSplats < n; c++ {
		first := c * m.chunkSplats
		count := min(m.chunkSplats, n-first)
		params := m.chunks[c].At(0, m.nParams*m.chunkSplats).View
		r := vk.NewRecorder(m.dev)
		if kind == vk.Upload {
			clear(host)
			each(c, first, count, host)
			r.Copy(params, staging.View)
		} else {
			r.Copy(staging.View, params)
		}
		if err := runOnce(m.dev, r, "transfer model"); err != nil {
			return err
		}
		if kind == vk.Readback {
			each(c, first, count, host)
		}
	}
	return nil
}

// upload makes s, whose degree is at most the model's, the model's splats; moments and statistics become zero.
func (m *model) upload(s *scene.Splats) error {
	if err := m.reserve(s.N); err != nil {
		return err
	}
	rows := paramRows(s.Degree)
	return m.transfer(s.N, vk.Upload, func(_, first, count int, host []float32) {
		for r := range rows {
			for i := range count {
				host[r*m.chunkSplats+i] = *rowValue(s, r, first+i)
			}
		}
	})
}

// download returns the first n splats.
func (m *model) download(n int) (*scene.Splats, error) {
	s := scene.NewSplats(n, m.degree)
	err := m.transfer(n, vk.Readback, func(_, first, count int, host []float32) {
		for r := range m.nParams {
			for i := range count {
				*rowValue(s, r, first+i) = host[r*m.chunkSplats+i]
			}
		}
	})
	return s, err
}

func (m *model) close() (err error) {
	for _, c := range m.chunks {
		err = errors.Join(err, m.dev.Free(c.View))
	}
	m.chunks = nil
	return err
}
