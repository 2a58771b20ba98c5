package splatfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// spzCursor reads a plane of a file from its first splat to its last. Splats come one after the other, while files hold
// all positions, then all opacities and so on in a stream that can only be read from its beginning: so there is a
// decoder for each plane, which skips what lies before it. For versions 1 to 3 that is up to twice the work of
// unpacking the file once, and it takes neither memory nor a temporary file.
type spzCursor struct {
	io.Reader
	end func() error // checks what follows the plane, nil for nothing
	off func()       // frees the decoder, nil for nothing
}

func (c *spzCursor) finish() error {
	if c.end == nil {
		return nil
	}
	return c.end()
}

func (c *spzCursor) close() {
	if c.off != nil {
		c.off()
	}
}

// cursors opens a cursor for each plane. Those of planes without bytes read nothing.
func (s *spzSource) cursors() (cursors [spzPlanes]spzCursor, err error) {
	if s.head.version >= spzZstdVersion {
		err = s.zstdCursors(&cursors)
	} else {
		err = s.gzipCursors(&cursors)
	}
	if err != nil {
		for i := range cursors {
			cursors[i].close()
		}
	}
	return cursors, err
}

// gzipCursors opens those of versions 1 to 3; all skip at the same time.
func (s *spzSource) gzipCursors(cursors *[spzPlanes]spzCursor) error {
	var all sync.WaitGroup
	var errs [spzPlanes]error
	for plane := range cursors {
		if plane == spzSH && s.head.degree == 0 {
			continue
		}
		all.Go(func() {
			cursors[plane].Reader, errs[plane] = s.stream(spzHeaderBytes + s.head.planesBytes(plane))
		})
	}
	all.Wait()
	last := &cursors[spzSH]
	if s.head.degree == 0 {
		last = &cursors[spzRotations]
	}
	last.end = func() error {
		_, err := s.readTail(last.Reader)
		return err
	}
	return cmp.Or(errs[:]...)
}

// zstdCursors opens those of version 4, which has a stream for each plane.
func (s *spzSource) zstdCursors(cursors *[spzPlanes]spzCursor) error {
	for _, at := range s.table {
		// A frame's window is room that a header claims. One larger than the plane is of no use, but some writers have
		// a fixed one.
		window := uint64(min(max(at.full, 32<<20), 128<<20))
		d, err := zstd.NewReader(io.NewSectionReader(s.r, at.at, at.size), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(window))
		if err != nil {
			return err
		}
		exact := &exactReader{d, at.full, spzPlaneNames[at.plane]}
		cursors[at.plane] = spzCursor{exact, exact.end, d.Close}
	}
	return nil
}

// exactReader reads a stream that must have a length.
type exactReader struct {
	r    io.Reader
	rest int64
	name string
}

func (e *exactReader) Read(b []byte) (int, error) {
	n, err := e.r.Read(b[:min(int64(len(b)), e.rest)])
	e.rest -= int64(n)
	switch {
	case err == io.EOF && e.rest > 0:
		err = fmt.Errorf("%s: the stream is shorter than the table says", e.name)
	case err == io.EOF:
		err = nil // end looks whether it is
	case err != nil:
		err = fmt.Errorf("%s: %w", e.name, err)
	}
	return n, err
}

// end wants the stream to end here, and the check sum of its last frame to be right.
func (e *exactReader) end() error {
	switch n, err := io.CopyN(io.Discard, e.r, 1); {
	case n > 0:
		return fmt.Errorf("%s: the stream is longer than the table says", e.name)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("%s: %w", e.name, err)
	}
	return nil
}
