package splatfile

import (
	"io"

	"vksplat/scene"
)

// planesInMemory is how many bytes of planes are kept in memory while a file is written; more go to a temporary file.
const planesInMemory = 64 << 20

// planeChunk is how many bytes of planes are in one piece of memory.
const planeChunk = 4 << 20

// planes are arrays that stand one after another, each with a fixed number of bytes for every splat: the order of
// formats that keep all positions together, then all colours and so on, while models come splat by splat. They are in
// memory, or in a temporary file where they are large.
type planes struct {
	widths []int
	starts []int64 // where each plane begins; one more: where the last one ends
	limit  int64   // up to this size they are in memory
	dir    string  // of the temporary file
	chunks [][]byte
	file   *tempFile
}

func newPlanes(n int, widths []int, limit int64, dir string) *planes {
	p := &planes{widths: widths, starts: make([]int64, len(widths)+1), limit: limit, dir: dir}
	for i, width := range widths {
		p.starts[i+1] = p.starts[i] + int64(n)*int64(width)
	}
	return p
}

func (p *planes) size() int64 { return p.starts[len(p.widths)] }

// make takes the room for planes that are written in any order. The number of splats must be known to be true.
func (p *planes) make() (err error) {
	if p.size() > p.limit {
		p.file, err = createTemp(p.dir, p.size())
		return err
	}
	for at := int64(0); at < p.size(); at += planeChunk {
		p.chunks = append(p.chunks, make([]byte, min(planeChunk, p.size()-at)))
	}
	return nil
}

// fill makes the planes of a model whose axes are turned. pack appends what each plane has of a piece that begins with
// splat first of the model.
func (p *planes) fill(model Source, axes [3]float32, pack func(first int, piece *scene.Splats,
	packed [][]byte) error) error {
	if err := p.make(); err != nil {
		return err
	}
	packed := make([][]byte, len(p.widths))
	return eachWritable(model, func(first int, piece *scene.Splats) error {
		flip(piece, axes[0], axes[1], axes[2])
		for plane := range packed {
			packed[plane] = packed[plane][:0]
		}
		if err := pack(first, piece, packed); err != nil {
			return err
		}
		for plane, b := range packed {
			if err := p.put(plane, first, b); err != nil {
				return err
			}
		}
		return nil
	})
}

// put writes the values of a plane from splat first on.
func (p *planes) put(plane, first int, values []byte) error {
	at := p.starts[plane] + int64(first)*int64(p.widths[plane])
	if p.file != nil {
		_, err := p.file.WriteAt(values, at)
		return err
	}
	for len(values) > 0 {
		n := copy(p.chunks[at/planeChunk][at%planeChunk:], values)
		values, at = values[n:], at+int64(n)
	}
	return nil
}

func (p *planes) ReadAt(b []byte, at int64) (int, error) {
	if p.file != nil {
		return p.file.ReadAt(b, at)
	}
	done := 0
	for done < len(b) && at < p.size() {
		n := copy(b[done:], p.chunks[at/planeChunk][at%planeChunk:])
		done, at = done+n, at+int64(n)
	}
	if done < len(b) {
		return done, io.EOF
	}
	return done, nil
}

// reader reads a plane from its first to its last splat.
func (p *planes) reader(plane int) io.Reader {
	return io.NewSectionReader(p, p.starts[plane], p.starts[plane+1]-p.starts[plane])
}

func (p *planes) all() io.Reader { return io.NewSectionReader(p, 0, p.size()) }

// close frees the memory or the temporary file.
func (p *planes) close() error {
	p.chunks = nil
	if p.file == nil {
		return nil
	}
	file := p.file
	p.file = nil
	return file.close()
}
