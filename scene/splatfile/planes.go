package splatfile

import "io"

// planesInMemory is how many bytes of planes are kept in memory while a file is written; more go to a temporary file.
const planesInMemory = 64 << 20

// planeChunk is how many bytes of planes are in one piece of memory.
const planeChunk = 4 << 20

// planes are arrays that stand one after another, each with a fixed number of bytes for every splat: the order of formats that keep all positions
// together, then all colours and so on, while models come splat by splat. They are in memory, or in a temporary file where they are large.
type planes struct {
	widths []int
	starts []int64 // where each plane begins; one more: where the last one ends
	limit  int64   // up to this size they are in memory
	dir    string  // of the temporary file, "" for the system's
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
func (p *planes) make() error {
	if p.size() > p.limit {
		return p.create()
	}
	for at := int64(0); at < p.size(); at += planeChunk {
		p.chunks = append(p.chunks, make([]byte, min(planeChunk, p.size()-at)))
	}
	return nil
}

func (p *planes) create() (err error) {
	p.file, err = createTemp(p.dir)
	return err
}

// fill reads the planes from their beginning to their end. Memory grows with what comes, never with what a header claims.
func (p *planes) fill(r io.Reader) error {
	at, end := int64(0), min(p.size(), p.limit)
	for at < end {
		chunk := make([]byte, min(planeChunk, end-at))
		if _, err := io.ReadFull(r, chunk); err != nil {
			return err
		}
		p.chunks = append(p.chunks, chunk)
		at += int64(len(chunk))
	}
	if at == p.size() {
		return nil
	}
	if err := p.create(); err != nil {
		return err
	}
	for _, chunk := range p.chunks {
		if _, err := p.file.Write(chunk); err != nil {
			return err
		}
	}
	p.chunks = nil
	n, err := io.Copy(p.file, io.LimitReader(r, p.size()-at))
	if err == nil && n < p.size()-at {
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
	for len(values) > 0 {
		n := copy(p.chunks[at/planeChunk][at%planeChunk:], values)
		values, at = values[n:], at+int64(n)
	}
	return nil
}

// get gives the values of n splats of a plane. They are valid until the next call with the same room, which grows as needed.
func (p *planes) get(plane, first, n int, room *[]byte) ([]byte, error) {
	at := p.starts[plane] + int64(first)*int64(p.widths[plane])
	size := n * p.widths[plane]
	if size == 0 {
		return nil, nil
	}
	if p.file == nil && at%planeChunk+int64(size) <= planeChunk {
		return p.chunks[at/planeChunk][at%planeChunk:][:size], nil
	}
	if len(*room) < size {
		*room = make([]byte, size)
	}
	_, err := p.ReadAt((*room)[:size], at)
	return (*room)[:size], err
}

// ReadAt reads planes as if they were a file.
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

// all reads the planes one after another.
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
