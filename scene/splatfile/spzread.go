package splatfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"

	"vksplat/internal/fault"
	"vksplat/scene"
)

// spzSource reads a file from its beginning to its end, without keeping any of it: a decoder for each plane (see
// spzCursor) gives the bytes of a piece.
type spzSource struct {
	path   string
	r      io.ReaderAt
	size   int64
	closer io.Closer
	info   Info
	head   spzHeader
	table  []spzStream // of version 4
	axes   spzAxes
}

// spzFrame are the axes of SPZ: right, up, back.
var spzFrame = [3]float32{1, -1, -1}

func openSPZ(path string) (Source, error) {
	return openWith(opReadSPZ, path, func(path string, r io.ReaderAt, size int64, closer io.Closer) (Source, error) {
		return newSPZSource(path, r, size, closer)
	})
}

func newSPZSource(path string, r io.ReaderAt, size int64, closer io.Closer) (*spzSource, error) {
	s := &spzSource{path: path, r: r, size: size, closer: closer, axes: spzAxes{sign: spzFrame}}
	if err := s.readHeader(); err != nil {
		return nil, s.fail(err)
	}
	return s, nil
}

func (s *spzSource) fail(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the file ends before its %d splats do", s.head.n)
	}
	return readError(opReadSPZ, s.path, err, "")
}

func (s *spzSource) readHeader() error {
	stream, err := s.stream(0)
	if err != nil {
		return err
	}
	var b [spzZstdHeader]byte
	n, err := io.ReadFull(stream, b[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	if s.head, err = parseSPZHeader(b[:n]); err != nil {
		return err
	}
	s.info = s.head.info()
	total := s.head.planesBytes(spzPlanes)
	if total > spzSmall && total/spzMaxRatio > s.size {
		return fmt.Errorf("the header claims %d splats, %d bytes, in a file of %d", s.head.n, total, s.size)
	}
	extended := s.head.flags&spzExtended != 0
	switch {
	case s.head.version >= spzZstdVersion:
		if s.table, err = s.streams(); err == nil && extended {
			err = s.readExtensions(io.NewSectionReader(s.r, spzZstdHeader, s.head.table-spzZstdHeader))
		}
	case extended: // they follow the last plane, and may say what its numbers mean
		if stream, err = s.stream(spzHeaderBytes + total); err == nil {
			var tail []byte
			if tail, err = s.readTail(stream); err == nil {
				err = s.readExtensions(bytes.NewReader(tail))
			}
		}
	}
	return err
}

// stream gives the bytes of the file from a place on, unpacked if it is a gzip stream.
func (s *spzSource) stream(at int64) (io.Reader, error) {
	buffered := bufio.NewReaderSize(io.NewSectionReader(s.r, 0, s.size), 1<<16)
	head, err := buffered.Peek(3)
	if err != nil || !isGzip(head) {
		if at > s.size {
			return nil, io.ErrUnexpectedEOF
		}
		buffered.Reset(io.NewSectionReader(s.r, at, s.size-at))
		return buffered, nil
	}
	unpacked, err := gzip.NewReader(buffered)
	if err == nil {
		_, err = io.CopyN(io.Discard, unpacked, at)
	}
	return unpacked, err
}

// readTail reads what follows the last plane of versions 1 to 3. At the end of a gzip stream that compares its check
// sum, too.
func (s *spzSource) readTail(stream io.Reader) ([]byte, error) {
	most := 0
	if s.head.flags&spzExtended != 0 {
		most = spzMaxTail
	}
	tail, err := io.ReadAll(io.LimitReader(stream, int64(most)+1))
	if err == nil && len(tail) > most {
		err = s.longer()
	}
	return tail, err
}

// longer is the error of a file that has more bytes than its header says. A wrong number of splats there shifts every
// plane but the first.
func (s *spzSource) longer() error {
	return fmt.Errorf("the file has data after the last of its %d splats", s.head.n)
}

// spzStream is where the file has a plane of version 4.
type spzStream struct {
	plane          int
	at, size, full int64
}

// streams reads the table of version 4. Planes without bytes have no stream, as the reference implementation writes
// them.
func (s *spzSource) streams() ([]spzStream, error) {
	h := s.head
	data := h.table + 16*int64(h.streams)
	if data > s.size {
		return nil, fmt.Errorf("the table ends at byte %d of %d", data, s.size)
	}
	table := make([]byte, 16*h.streams)
	if _, err := s.r.ReadAt(table, h.table); err != nil {
		return nil, err
	}
	planes := spzPlanes
	if h.degree == 0 {
		planes = spzSH
	}
	if h.streams != planes && h.n > 0 {
		return nil, fmt.Errorf("the table has %d streams, the model has %d", h.streams, planes)
	}
	var out []spzStream
	for plane, width := range h.widths() {
		full := int64(h.n) * int64(width)
		if full == 0 {
			continue
		}
		packed, claimed := binary.LittleEndian.Uint64(table), binary.LittleEndian.Uint64(table[8:])
		switch {
		case claimed != uint64(full):
			return nil, fmt.Errorf("%s: the table claims %d bytes, and %d splats need %d", spzPlaneNames[plane],
				claimed, h.n, full)
		case packed > uint64(s.size-data):
			return nil, fmt.Errorf("%s: the file ends early: the table claims %d packed bytes, and %d are left",
				spzPlaneNames[plane], packed, s.size-data)
		}
		out = append(out, spzStream{plane, data, int64(packed), full})
		data += int64(packed)
		table = table[16:]
	}
	if data != s.size && len(table) == 0 { // sizes of streams do not matter in a file without splats
		return nil, s.longer()
	}
	return out, nil
}

// spzExtensionFrame is Adobe's record of the axes of the positions, when they are not right, up, back.
const spzExtensionFrame = 0xadbe0003

// spzAxes is how the axes of a file become ours.
type spzAxes struct {
	sign    [3]float32 // as Flip takes them
	upright bool       // z is up or down, and y front or back: a quarter turn about x follows
}

// spzAxesOf gives the axes of a value of that record. 1 to 8 are the bits of value-1: x is right, not left; y is up,
// not down; z is front, not back. 4 is right, up, back. 9 to 16 are the same a quarter turn later: 12 is right, front,
// up. Half of all are left-handed. Niantic's library, which writes these files, mirrors axes by their bits after it has
// turned them, so that what it writes as 9, 10, 15 and 16 is half a turn about x from what these are called. It is read
// as the library reads it. 0 says nothing.
func spzAxesOf(value uint32) (a spzAxes, known bool) {
	if value == 0 {
		return spzAxes{sign: spzFrame}, true
	}
	bits := value - 1
	a = spzAxes{upright: bits&8 != 0, sign: [3]float32{-1, 1, -1}} // left, down, back
	for axis := range a.sign {
		if bits>>axis&1 == 1 {
			a.sign[axis] *= -1
		}
	}
	return a, bits < 16
}

// quarterTurn brings x, y, z to x, z, -y.
var quarterTurn = sync.OnceValue(func() *mover {
	return newMover(Similarity{Scale: 1, R: [9]float64{1, 0, 0, 0, 0, 1, 0, -1, 0}})
})

// toOurs turns splats in place.
func (a spzAxes) toOurs(s *scene.Splats) {
	flip(s, a.sign[0], a.sign[1], a.sign[2])
	if a.upright {
		quarterTurn().apply(s)
	}
}

// readExtensions reads records of type, length and content up to the end of r. The only one that changes what the
// numbers mean is that of the axes.
func (s *spzSource) readExtensions(r io.Reader) error {
	var record [8]byte
	for {
		if _, err := io.ReadFull(r, record[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("extensions: %v", err)
		}
		kind, length := binary.LittleEndian.Uint32(record[:]), binary.LittleEndian.Uint32(record[4:])
		if kind != spzExtensionFrame || length != 4 {
			if _, err := io.CopyN(io.Discard, r, int64(length)); err != nil {
				return fmt.Errorf("extension %#x: %v", kind, err)
			}
			s.info.Notes = append(s.info.Notes,
				fmt.Sprintf("the file has a record of kind %#x, which is left out", kind))
			continue
		}
		var value [4]byte
		if _, err := io.ReadFull(r, value[:]); err != nil {
			return fmt.Errorf("extension %#x: %v", kind, err)
		}
		frame, known := binary.LittleEndian.Uint32(value[:]), false
		if s.axes, known = spzAxesOf(frame); !known {
			return &fault.Error{Op: opReadSPZ, Err: fmt.Errorf("its axes are of kind %d: 0 to 16 are known", frame),
				Hint: "export it again with the axes of SPZ: right, up, back"}
		}
	}
}

func (s *spzSource) Info() Info { return s.info }

func (s *spzSource) Close() error { return s.closer.Close() }

// Read decodes the planes side by side.
func (s *spzSource) Read(put func(piece *scene.Splats) error) error {
	cursors, err := s.cursors()
	if err != nil {
		return s.fail(err)
	}
	defer func() {
		for _, c := range cursors {
			c.close()
		}
	}()
	room := scene.NewSplats(min(s.head.n, PieceSplats), s.info.Degree)
	var packed [spzPlanes][]byte
	for first := 0; first < s.head.n; first += PieceSplats {
		piece := room.Slice(0, min(PieceSplats, s.head.n-first))
		for plane, width := range s.head.widths() {
			packed[plane] = slices.Grow(packed[plane][:0], piece.N*width)[:piece.N*width]
			if _, err := io.ReadFull(cursors[plane], packed[plane]); err != nil {
				return s.fail(err)
			}
		}
		unpackSPZ(s.head, packed, piece)
		s.axes.toOurs(piece)
		if err := put(piece); err != nil {
			return err
		}
	}
	for _, c := range cursors {
		if err := c.finish(); err != nil {
			return s.fail(err)
		}
	}
	return nil
}
