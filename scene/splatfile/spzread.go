package splatfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"vksplat/scene"
)

// spzSource reads a file. The planes stay packed, as they are in the file: 19 to 64 bytes a splat.
type spzSource struct {
	indexed
	path   string
	r      io.ReaderAt
	size   int64
	closer io.Closer
	head   spzHeader
	planes *planes
	// sign are the factors from the file's axes to ours, as Flip takes them.
	sign [3]float32
	// room is for planes that are in a temporary file.
	room [spzPlanes][]byte
}

// spzFrame are the axes of SPZ: right, up, back.
var spzFrame = [3]float32{1, -1, -1}

func openSPZ(path string) (Source, error) {
	file, size, err := openFile(opReadSPZ, path)
	if err != nil {
		return nil, err
	}
	s, err := newSPZSource(path, file, size, file)
	if err != nil {
		_ = file.Close() // the first error is the one to report
		return nil, err
	}
	return s, nil
}

// newSPZSource reads size bytes of r.
func newSPZSource(path string, r io.ReaderAt, size int64, closer io.Closer) (*spzSource, error) {
	s := &spzSource{path: path, r: r, size: size, closer: closer, sign: spzFrame}
	s.decode = s.unpack
	err := s.readHeader()
	if err == nil {
		// The planes are unpacked at once: until then the number of splats is only what the header claims.
		err = s.load()
	}
	if err != nil {
		return nil, readError(opReadSPZ, path, err, "")
	}
	return s, nil
}

func (s *spzSource) readHeader() error {
	stream, err := s.stream()
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
	total := newPlanes(s.head.n, s.head.widths(), 0, "").size()
	if total > spzSmall && total/spzMaxRatio > s.size {
		return fmt.Errorf("the header claims %d splats, %d bytes, in a file of %d", s.head.n, total, s.size)
	}
	if s.head.version >= spzZstdVersion {
		if _, err := s.streams(); err != nil {
			return err
		}
		return s.readExtensions(io.NewSectionReader(s.r, spzZstdHeader, s.head.table-spzZstdHeader))
	}
	return nil
}

// stream gives the bytes of the file, unpacked if it is a gzip stream.
func (s *spzSource) stream() (io.Reader, error) {
	buffered := bufio.NewReaderSize(io.NewSectionReader(s.r, 0, s.size), 1<<16)
	head, err := buffered.Peek(3)
	if err != nil || !isGzip(head) {
		return buffered, nil
	}
	return gzip.NewReader(buffered)
}

// spzStream is where the file has a plane of version 4.
type spzStream struct {
	plane          int
	at, size, full int64
}

// streams reads the table of version 4. Planes without bytes have no stream, as the reference implementation writes them.
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
		if claimed != uint64(full) || packed > uint64(s.size-data) {
			return nil, fmt.Errorf("%s: the table claims %d bytes packed to %d, and %d splats need %d", spzPlaneNames[plane], claimed, packed, h.n, full)
		}
		out = append(out, spzStream{plane, data, int64(packed), full})
		data += int64(packed)
		table = table[16:]
	}
	return out, nil
}

// load unpacks the planes.
func (s *spzSource) load() error {
	s.planes = newPlanes(s.head.n, s.head.widths(), spzInMemory, "")
	load := s.loadGzip
	if s.head.version >= spzZstdVersion {
		load = s.loadZstd
	}
	err := load(s.planes)
	if err != nil {
		_ = s.planes.close() // the first error is the one to report
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file ends before its %d splats do", s.head.n)
	}
	return err
}

func (s *spzSource) loadGzip(p *planes) error {
	stream, err := s.stream()
	if err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, stream, spzHeaderBytes); err != nil {
		return err
	}
	if err := p.fill(stream); err != nil {
		return err
	}
	// Reading on to the end also compares the check sum of gzip.
	tail, err := io.ReadAll(io.LimitReader(stream, spzMaxTail+1))
	switch {
	case err != nil:
		return err
	case len(tail) > spzMaxTail:
		return errors.New("the file goes on after its last splat")
	case s.head.flags&spzExtended != 0:
		return s.readExtensions(bytes.NewReader(tail))
	}
	return nil
}

func (s *spzSource) loadZstd(p *planes) error {
	streams, err := s.streams()
	if err != nil {
		return err
	}
	readers := make([]io.Reader, len(streams))
	for i, at := range streams {
		// A frame's window is room that a header claims. One larger than the plane is of no use, but some writers have a fixed one.
		window := uint64(min(max(at.full, 32<<20), 128<<20))
		d, err := zstd.NewReader(io.NewSectionReader(s.r, at.at, at.size), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(window))
		if err != nil {
			return err
		}
		defer d.Close()
		readers[i] = &exactReader{d, at.full, spzPlaneNames[at.plane]}
	}
	return p.fill(io.MultiReader(readers...))
}

// exactReader reads a stream that must have a length.
type exactReader struct {
	r    io.Reader
	rest int64
	name string
}

func (e *exactReader) Read(b []byte) (int, error) {
	if e.rest == 0 {
		var one [1]byte
		n, err := io.ReadFull(e.r, one[:])
		if n > 0 {
			return 0, fmt.Errorf("%s: the stream is longer than the table says", e.name)
		}
		return 0, err
	}
	n, err := e.r.Read(b[:min(int64(len(b)), e.rest)])
	e.rest -= int64(n)
	switch {
	case err == io.EOF && e.rest > 0:
		err = fmt.Errorf("%s: the stream is shorter than the table says", e.name)
	case err == io.EOF:
		err = nil // the next call tells the end, after comparing the length
	case err != nil:
		err = fmt.Errorf("%s: %w", e.name, err)
	}
	return n, err
}

// spzExtensionFrame is Adobe's record of the axes of the positions, when they are not right, up, back.
const spzExtensionFrame = 0xadbe0003

// spzFrames are the values of that record from 0 on, as signs from the file's axes to ours. Left-handed ones are refused: zero.
var spzFrames = [...][3]float32{spzFrame, {-1, 1, -1}, {}, {}, spzFrame, {}, {1, 1, 1}, {-1, -1, 1}, {}}

// readExtensions reads records of type, length and content up to the end of r, when the flag says that there are any. The only one that changes what the
// numbers mean is that of the axes.
func (s *spzSource) readExtensions(r io.Reader) error {
	if s.head.flags&spzExtended == 0 {
		return nil
	}
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
			s.info.Notes = append(s.info.Notes, fmt.Sprintf("The file has a record of kind %#x, which is left out.", kind))
			continue
		}
		var value [4]byte
		if _, err := io.ReadFull(r, value[:]); err != nil {
			return fmt.Errorf("extension %#x: %v", kind, err)
		}
		frame := binary.LittleEndian.Uint32(value[:])
		if frame >= uint32(len(spzFrames)) || spzFrames[frame] == [3]float32{} {
			return &scene.Error{Op: opReadSPZ, Err: fmt.Errorf("its axes are of kind %d, which is not known or is left-handed", frame),
				Hint: "export it again with the axes of SPZ: right, up, back"}
		}
		s.sign = spzFrames[frame]
	}
}

func (s *spzSource) Close() error {
	return errors.Join(s.planes.close(), s.closer.Close())
}

// unpack unpacks splats from first on.
func (s *spzSource) unpack(first int, piece *scene.Splats) error {
	var packed [spzPlanes][]byte
	for plane := range packed {
		var err error
		if packed[plane], err = s.planes.get(plane, first, piece.N, &s.room[plane]); err != nil {
			return readError(opReadSPZ, s.path, err, "")
		}
	}
	unpackSPZ(s.head, packed, piece)
	Flip(piece, s.sign[0], s.sign[1], s.sign[2])
	return nil
}
