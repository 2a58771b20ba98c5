package splatfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// planesInMemory is how many bytes of planes are kept in memory while a file is written; more go to a temporary file.
const planesInMemory = 64 << 20

// planes are arrays that stand one after another, each with a fixed number of bytes for every splat: the order of formats that keep all positions
// together, then all colours and so on, while models come splat by splat. They are in memory, or in a temporary file where they are large.
type planes struct {
	widths []int
	starts []int64 // where each plane begins; one more: where the last one ends
	limit  int64   // up to this size they are in memory
	dir    string  // of the temporary file, "" for the system's
	memory []byte
	file   *os.File
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
func (p *planes) make() error {
	if p.size() <= p.limit {
		p.memory = make([]byte, p.size())
		return nil
	}
	return p.create()
}

func (p *planes) create() (err error) {
	p.file, err = createTemp(p.dir)
	return err
}

// fill reads the planes from their beginning to their end. Memory grows with what comes, never with what a header claims.
func (p *planes) fill(r io.Reader) error {
	end := min(p.size(), p.limit)
	for int64(len(p.memory)) < end {
		at := len(p.memory)
		next := min(int64(at)+max(1<<20, int64(at)/4), end)
		p.memory = append(p.memory, make([]byte, next-int64(at))...)
		if _, err := io.ReadFull(r, p.memory[at:]); err != nil {
			return err
		}
	}
	if int64(len(p.memory)) == p.size() {
		return nil
	}
	if err := p.create(); err != nil {
		return err
	}
	if _, err := p.file.Write(p.memory); err != nil {
		return err
	}
	rest := p.size() - int64(len(p.memory))
	p.memory = nil
	n, err := io.Copy(p.file, io.LimitReader(r, rest))
	if err == nil && n < rest {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// put writes the values of a plane from splat first on.
func (p *planes) put(plane, first int, values []byte) error {
	at := p.starts[plane] + int64(first)*int64(p.widths[plane])
	if p.file != nil {
		_, err := p.file.WriteAt(values, at)
		return err
	}
	copy(p.memory[at:], values)
	return nil
}

// get gives the values of n splats of a plane. They are valid until the next call with the same room, which grows as needed.
func (p *planes) get(plane, first, n int, room *[]byte) ([]byte, error) {
	at := p.starts[plane] + int64(first)*int64(p.widths[plane])
	size := n * p.widths[plane]
	if p.file == nil {
		return p.memory[at : at+int64(size)], nil
	}
	if len(*room) < size {
		*room = make([]byte, size)
	}
	_, err := p.file.ReadAt((*room)[:size], at)
	return (*room)[:size], err
}

// reader reads a plane from its first to its last splat.
func (p *planes) reader(plane int) io.Reader { return p.section(p.starts[plane], p.starts[plane+1]) }

// all reads the planes one after another.
func (p *planes) all() io.Reader { return p.section(0, p.size()) }

func (p *planes) section(from, to int64) io.Reader {
	if p.file != nil {
		return io.NewSectionReader(p.file, from, to-from)
	}
	return bytes.NewReader(p.memory[from:to])
}

// close frees the memory or the temporary file.
func (p *planes) close() error {
	p.memory = nil
	if p.file == nil {
		return nil
	}
	file := p.file
	p.file = nil
	return dropTemp(file)
}

// createTemp opens a file for what memory does not hold.
func createTemp(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, ".splats.tmp*")
	if err != nil {
		return nil, fmt.Errorf("make temporary file: %w", err)
	}
	// Where the system lets an open file lose its name, nothing is left behind by a killed process. Elsewhere dropTemp removes it.
	_ = os.Remove(file.Name())
	return file, nil
}

func dropTemp(file *os.File) error {
	err := file.Close()
	if gone := os.Remove(file.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
