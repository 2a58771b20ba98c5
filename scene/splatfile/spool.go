package splatfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"math"

	"vksplat/scene"
)

// memoryBytes is the size of a model up to which it is held in memory where its splats are needed in another order.
const memoryBytes = 256 << 20

// spoolBytes is the size of a piece of a spool that is written at once.
const spoolBytes = 1 << 20

// gatherable gives a model whose splats can be read in any order, and what frees it: the model itself where it can,
// else a copy in memory or, of a large one, in a temporary file.
func gatherable(model Source, tempDir string) (Gatherer, func() error, error) {
	if g, ok := model.(Gatherer); ok {
		return g, func() error { return nil }, nil
	}
	info := model.Info()
	if int64(info.N)*int64(4*scene.SplatNumbers(info.Degree)) > memoryBytes {
		s, err := newSpool(model, tempDir)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
	all, err := All(model)
	if err != nil {
		return nil, nil, err
	}
	return inMemory(all, info), func() error { return nil }, nil
}

// spool is a model in a temporary file: rows of float32, little endian, in the order of scene.Splats.
type spool struct {
	indexed
	file *tempFile
	row  int // bytes
	room []byte
}

func newSpool(model Source, dir string) (*spool, error) {
	info := model.Info()
	s := &spool{row: 4 * scene.SplatNumbers(info.Degree)}
	s.indexed = indexed{info, s.load}
	var err error
	if s.file, err = createTemp(dir, int64(info.N)*int64(s.row)); err != nil {
		return nil, err
	}
	if err := s.fill(model); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *spool) fill(model Source) error {
	w := bufio.NewWriterSize(s.file, spoolBytes)
	row := make([]byte, 0, s.row)
	err := eachPiece(model, func(_ int, piece *scene.Splats) error {
		tensors := piece.Tensors()
		for i := range piece.N {
			row = row[:0]
			for _, t := range tensors {
				row = appendFloats(row, t.At(i)...)
			}
			if _, err := w.Write(row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.Flush()
}

func (s *spool) Close() error { return s.file.close() }

func (s *spool) load(first int, into *scene.Splats) error {
	rows, err := readRows(s.file, 0, s.row, first, into.N, &s.room)
	tensors := into.Tensors()
	for i := 0; len(rows) > 0; i++ {
		for _, t := range tensors {
			part := t.At(i)
			for k := range part {
				part[k] = math.Float32frombits(binary.LittleEndian.Uint32(rows[4*k:]))
			}
			rows = rows[4*len(part):]
		}
	}
	return err
}
