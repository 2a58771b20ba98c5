package splatfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"

	"vksplat/scene"
)

// memoryBytes is the size of a model up to which it is held in memory where its splats are needed in another order.
const memoryBytes = 256 << 20

// spoolBytes is the size of a piece of a spool that is written at once.
const spoolBytes = 1 << 20

// gatherable gives a model whose splats can be read in any order, and what frees it: the model itself where it can, else a copy in memory or, of a large
// one, in a temporary file.
func gatherable(model Source, tempDir string) (Gatherer, func() error, error) {
	if g, ok := model.(Gatherer); ok {
		return g, func() error { return nil }, nil
	}
	info := model.Info()
	if int64(info.N)*int64(4*rowNumbers(info.Degree)) > memoryBytes {
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
	return &memory{info, all}, func() error { return nil }, nil
}

// rowNumbers is how many numbers a splat has.
func rowNumbers(degree int) int { return 11 + 3*scene.SHCoefficients(degree) }

// spool is a model in a temporary file: rows of float32, little endian, in the order mean, quat, log scale, logit opacity, SH.
type spool struct {
	info Info
	file *os.File
	row  int // bytes
	gone bool
}

// newSpool copies a model to a file in dir. Where the system allows it the file has no name from the start on, so that nothing is left behind whatever
// happens; on Windows Close removes it.
func newSpool(model Source, dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, ".vksplat-spool*")
	if err != nil {
		return nil, spoolError(dir, err)
	}
	s := &spool{info: model.Info(), file: f, row: 4 * rowNumbers(model.Info().Degree)}
	s.gone = os.Remove(f.Name()) == nil
	if err := s.fill(model, dir); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func spoolError(dir string, err error) error {
	return &scene.Error{Op: "keep splats in a temporary file", Path: dir, Err: withoutPath(err), Kind: scene.ErrTryAgain,
		Hint: "make room there, or name another folder for temporary files"}
}

func (s *spool) fill(model Source, dir string) error {
	w := bufio.NewWriterSize(s.file, spoolBytes)
	row := make([]byte, 0, s.row)
	done := 0
	err := model.Read(func(piece *scene.Splats) error {
		if err := checkPiece(done, piece, s.info); err != nil {
			return err
		}
		for i := range piece.N {
			row = row[:0]
			for _, part := range splatParts(piece, i) {
				for _, x := range part {
					row = binary.LittleEndian.AppendUint32(row, math.Float32bits(x))
				}
			}
			if _, err := w.Write(row); err != nil {
				return spoolError(dir, err)
			}
		}
		done += piece.N
		return nil
	})
	if err == nil && done < s.info.N {
		err = fmt.Errorf("splatfile: read model: %d splats of %d came", done, s.info.N)
	}
	if err == nil {
		if flush := w.Flush(); flush != nil {
			err = spoolError(dir, flush)
		}
	}
	return err
}

// splatParts returns the tensors of splat i, sharing memory with s.
func splatParts(s *scene.Splats, i int) [5][]float32 {
	c := 3 * s.K()
	return [5][]float32{s.Means[3*i : 3*i+3], s.Quats[4*i : 4*i+4], s.LogScales[3*i : 3*i+3], s.LogitOpacities[i : i+1], s.SH[c*i : c*(i+1)]}
}

func (s *spool) Info() Info { return s.info }

// Close gives the file's bytes back.
func (s *spool) Close() error {
	err := s.file.Close()
	if !s.gone {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	return err
}

func (s *spool) Read(put func(piece *scene.Splats) error) error {
	room := scene.NewSplats(min(s.info.N, PieceSplats), s.info.Degree)
	buf := make([]byte, s.row*room.N)
	for lo := 0; lo < s.info.N; lo += room.N {
		piece := room.Slice(0, min(room.N, s.info.N-lo))
		if err := s.rows(buf[:s.row*piece.N], lo, piece, 0); err != nil {
			return err
		}
		if err := put(piece); err != nil {
			return err
		}
	}
	return nil
}

func (s *spool) Gather(ids []uint32, into *scene.Splats) error {
	buf := make([]byte, s.row)
	for i, id := range ids {
		if int(id) >= s.info.N {
			return fmt.Errorf("splatfile: gather splats: splat %d of %d", id, s.info.N)
		}
		if err := s.rows(buf, int(id), into, i); err != nil {
			return err
		}
	}
	return nil
}

// rows fills buf with rows from first on and takes them apart into splats at and so on.
func (s *spool) rows(buf []byte, first int, into *scene.Splats, at int) error {
	if _, err := s.file.ReadAt(buf, int64(s.row)*int64(first)); err != nil {
		return spoolError(s.file.Name(), err)
	}
	for i := 0; len(buf) > 0; i++ {
		for _, part := range splatParts(into, at+i) {
			for k := range part {
				part[k] = math.Float32frombits(binary.LittleEndian.Uint32(buf[4*k:]))
			}
			buf = buf[4*len(part):]
		}
	}
	return nil
}
