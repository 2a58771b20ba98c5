package capture

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"os"

	"vksplat/internal/atomicfile"
	"vksplat/internal/run/reconstruct"
	"vksplat/pipeline/features"
	"vksplat/scene/mapping"
	"vksplat/scene/twoview"
)

// errDamaged says that a file is not what was stored.
var errDamaged = errors.New("the file is damaged")

// A stored file is pieces, each behind its length in eight bytes, and the checksum of all that. Numbers are
// little-endian.
const (
	lengthBytes = 8
	sumBytes    = crc32.Size
)

var le = binary.LittleEndian

// store writes the pieces that each hands to put, one after the other.
func store(path string, each func(put func(piece []byte) error) error) error {
	var making error // which has nothing to do with the file
	err := atomicfile.Write(path, func(f io.Writer) error {
		sum := crc32.NewIEEE()
		to := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<18)
		var writing error
		err := each(func(piece []byte) error {
			if _, writing = to.Write(le.AppendUint64(nil, uint64(len(piece)))); writing == nil {
				_, writing = to.Write(piece)
			}
			return writing
		})
		if writing == nil {
			making = err
		}
		if err == nil {
			err = to.Flush()
		}
		if err == nil {
			_, err = f.Write(sum.Sum(nil))
		}
		return err
	})
	return cmp.Or(making, err)
}

// stored reads what store wrote: each gets the pieces, with their places in the file, until the next one.
func stored(path string, each func(piece []byte, at int64) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	info, err := f.Stat()
	if err != nil {
		return err
	}
	sum, body := crc32.NewIEEE(), info.Size()-sumBytes
	if _, err := io.CopyN(sum, f, body); err != nil {
		return errDamaged
	}
	if written, err := io.ReadAll(f); err != nil || string(written) != string(sum.Sum(nil)) {
		return errors.Join(errDamaged, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	from, at := bufio.NewReaderSize(f, 1<<18), int64(0)
	var room [lengthBytes]byte
	var piece []byte
	for at < body {
		if _, err := io.ReadFull(from, room[:]); err != nil {
			return err
		}
		n := le.Uint64(room[:])
		if at += lengthBytes; n > uint64(body-at) {
			return errDamaged
		}
		if uint64(cap(piece)) < n {
			piece = make([]byte, n)
		}
		piece = piece[:n]
		if _, err := io.ReadFull(from, piece); err != nil {
			return err
		}
		if err := each(piece, at); err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// pieceReader takes numbers off a piece; beyond its end they are 0, and short is set.
type pieceReader struct {
	b     []byte
	short bool
}

func (r *pieceReader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short, r.b = true, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *pieceReader) number() int {
	if b := r.bytes(4); b != nil {
		return int(int32(le.Uint32(b)))
	}
	return 0
}

// count reads the number of things that follow, of size bytes each.
func (r *pieceReader) count(size int) int {
	n := r.number()
	if n < 0 || n > len(r.b)/size {
		r.short = true
		return 0
	}
	return n
}

func (r *pieceReader) float() float32 { return math.Float32frombits(uint32(r.number())) }

func appendNumbers(b []byte, list ...int) []byte {
	for _, n := range list {
		b = le.AppendUint32(b, uint32(n))
	}
	return b
}

// pieceOf is a photo's features as they are stored, descriptors last.
func pieceOf(f *reconstruct.Features) ([]byte, error) {
	descriptors, err := f.AllDescriptors()
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(f.Name)+16+len(f.Points)*19+len(descriptors))
	b = appendNumbers(b, len(f.Name), f.Width, f.Height, len(f.Points))
	b = append(b, f.Name...)
	for _, p := range f.Points {
		for _, x := range [4]float32{p.X, p.Y, p.Scale, p.Angle} {
			b = le.AppendUint32(b, math.Float32bits(x))
		}
	}
	return append(append(b, f.Colours...), descriptors...), nil
}

// storedFeatures reads features; their descriptors stay in the file until they are needed.
func storedFeatures(path string) (list []reconstruct.Features, err error) {
	err = stored(path, func(piece []byte, at int64) error {
		r := &pieceReader{b: piece}
		name := r.number()
		f := reconstruct.Features{Width: r.number(), Height: r.number()}
		f.Points = make([]features.Keypoint, r.count(16+3+features.DescriptorBytes))
		f.Name = string(r.bytes(name))
		for i := range f.Points {
			f.Points[i] = features.Keypoint{X: r.float(), Y: r.float(), Scale: r.float(), Angle: r.float()}
		}
		f.Colours = append(f.Colours, r.bytes(3*len(f.Points))...)
		n := features.DescriptorBytes * len(f.Points)
		if r.short || len(r.b) != n {
			return errDamaged
		}
		at += int64(len(piece) - n)
		f.Load = func() ([]byte, error) { return readAt(path, at, n) }
		list = append(list, f)
		return nil
	})
	return list, err
}

// readAt reads bytes from a place of a file.
func readAt(path string, at int64, n int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	b := make([]byte, n)
	_, err = io.ReadFull(io.NewSectionReader(f, at, int64(n)), b)
	return b, err
}

// floatsOf are the numbers of a pair's relation, in the order in which they are stored.
func floatsOf(r *twoview.Relation) (list []*float64) {
	for _, m := range []*[9]float64{&r.E, &r.F, &r.H, &r.R} {
		for i := range m {
			list = append(list, &m[i])
		}
	}
	return append(list, &r.T[0], &r.T[1], &r.T[2], &r.Angle)
}

// storePairs writes pairs.
func storePairs(path string, list []mapping.Pair) error {
	return store(path, func(put func(piece []byte) error) error {
		var b []byte
		for i := range list {
			p := &list[i]
			r := &p.Relation
			b = appendNumbers(b[:0], p.A, p.B, int(r.Kind), len(p.Matches))
			for _, m := range p.Matches {
				b = appendNumbers(b, int(m[0]), int(m[1]))
			}
			b = appendNumbers(b, len(r.Inliers))
			for _, at := range r.Inliers {
				b = appendNumbers(b, int(at))
			}
			for _, x := range floatsOf(r) {
				b = le.AppendUint64(b, math.Float64bits(*x))
			}
			if err := put(b); err != nil {
				return err
			}
		}
		return nil
	})
}

// storedPairs reads pairs.
func storedPairs(path string) (list []mapping.Pair, err error) {
	err = stored(path, func(piece []byte, _ int64) error {
		r := &pieceReader{b: piece}
		p := mapping.Pair{A: r.number(), B: r.number()}
		p.Relation.Kind = twoview.Kind(r.number())
		p.Matches = make([][2]int32, r.count(8))
		for i := range p.Matches {
			p.Matches[i] = [2]int32{int32(r.number()), int32(r.number())}
		}
		p.Relation.Inliers = make([]int32, r.count(4))
		for i := range p.Relation.Inliers {
			p.Relation.Inliers[i] = int32(r.number())
		}
		for _, x := range floatsOf(&p.Relation) {
			if b := r.bytes(8); b != nil {
				*x = math.Float64frombits(le.Uint64(b))
			}
		}
		if list = append(list, p); r.short || len(r.b) > 0 {
			return errDamaged
		}
		return nil
	})
	return list, err
}

// reuse reads what an earlier call of the command stored, or has it made once more where that cannot be read.
func reuse[T any](w *own, name string, what *[]T, read func(path string) ([]T, error), remake func() error) error {
	var err error
	if *what, err = read(w.o.in(name)); err == nil {
		return nil
	}
	w.console.Note(w.o.in(name) + " is made again: " + err.Error())
	return errors.Join(w.stages.written.Begin(w.o.in(name)), remake())
}
