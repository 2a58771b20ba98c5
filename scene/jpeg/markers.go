package jpeg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"vksplat/internal/pixelpool"
	"vksplat/scene"
)

// Markers of JPEG, each behind a byte 0xFF.
const (
	MarkerSOF0  = 0xC0
	markerSOF1  = 0xC1
	markerSOF2  = 0xC2
	MarkerDHT   = 0xC4
	markerJPG   = 0xC8
	markerDAC   = 0xCC
	markerSOF15 = 0xCF
	MarkerRST0  = 0xD0
	markerRST7  = 0xD7
	markerSOI   = 0xD8
	MarkerEOI   = 0xD9
	MarkerSOS   = 0xDA
	MarkerDQT   = 0xDB
	markerDRI   = 0xDD
	markerAPP0  = 0xE0
	MarkerAPP1  = 0xE1
	markerAPP14 = 0xEE
	MarkerTEM   = 0x01
)

var (
	ErrEndsEarly = errors.New("the file ends early")
	errNoFrame   = errors.New("the JPEG holds no image")
)

// jpegComponent is one colour of a frame.
type jpegComponent struct {
	id            uint8
	h, v          int // samples in a unit of h by v of all components
	quantIndex    uint8
	width, height int // in samples, without the padding to whole blocks
	wide, high    int // in blocks
	pix           []uint8
	coefs         [][64]int16 // of progressive frames: by block, in stored order
	quant         *[64]int16  // in stored order; set by the first scan
	bit           [64]int8    // of progressive frames, by coefficient: the lowest bit known, -1 if none is
	dc, ac        *huffTable  // of the scan
	last          int32       // DC value of the block before
	dcID, acID    uint8       // tables of the scan
}

// jpegDecoder reads a JPEG of 8 bits whose codes are Huffman's.
type jpegDecoder struct {
	data          []byte
	pos           int
	width, height int // 0 before the frame
	hMax, vMax    int
	progressive   bool
	components    []jpegComponent
	quant         [4]*[64]int16
	codes         [2][4]*huffTable // of DC and AC
	interval      int              // MCUs between restart markers, 0 without
	jfif, adobe   bool
	transform     uint8 // Adobe's
	bits          entropyData
	scans         int
	beyond        [64]int16 // takes blocks beyond the edges
}

// nextMarker finds the next marker; like libjpeg it passes over stray bytes before it.
func (d *jpegDecoder) nextMarker() (uint8, error) {
	for ; d.pos+1 < len(d.data); d.pos++ {
		if m := d.data[d.pos+1]; d.data[d.pos] == 0xFF && m != 0 && m != 0xFF {
			d.pos += 2
			return m, nil
		}
	}
	return 0, ErrEndsEarly
}

// standsAlone says whether a marker has no length and no content.
func standsAlone(m uint8) bool { return m >= MarkerRST0 && m <= MarkerEOI || m == MarkerTEM }

// segment returns the content of the segment whose marker was just read.
func (d *jpegDecoder) segment() ([]byte, error) {
	if d.pos+2 > len(d.data) {
		return nil, ErrEndsEarly
	}
	n := int(binary.BigEndian.Uint16(d.data[d.pos:]))
	if n < 2 {
		return nil, fmt.Errorf("a segment of %d bytes is shorter than its length field", n)
	}
	if d.pos+n > len(d.data) {
		return nil, ErrEndsEarly
	}
	content := d.data[d.pos+2 : d.pos+n]
	d.pos += n
	return content, nil
}

// decode reads all segments until the image is complete.
func (d *jpegDecoder) decode() error {
	if len(d.data) < 2 || d.data[0] != 0xFF || d.data[1] != markerSOI {
		return errors.New("the file is not a JPEG")
	}
	d.pos = 2
	for {
		m, err := d.nextMarker()
		if err != nil {
			return err
		}
		switch {
		case m == MarkerEOI:
			return d.atEnd()
		case standsAlone(m):
			continue
		}
		content, err := d.segment()
		if err != nil {
			return err
		}
		if err := d.use(m, content); err != nil {
			return err
		}
		if m == MarkerSOS && d.complete() {
			return nil
		}
	}
}

// use takes in one segment.
func (d *jpegDecoder) use(m uint8, content []byte) error {
	switch m {
	case MarkerSOF0, markerSOF1, markerSOF2:
		return d.readFrame(m, content)
	case MarkerDHT:
		return d.readHuffman(content)
	case MarkerDQT:
		return d.readQuantisation(content)
	case MarkerSOS:
		return d.readScan(content)
	case markerDRI:
		if len(content) < 2 {
			return errors.New("the restart interval is cut short")
		}
		d.interval = int(binary.BigEndian.Uint16(content))
	case markerAPP0:
		d.jfif = d.jfif || len(content) >= 12 && string(content[:5]) == "JFIF\x00"
	case markerAPP14:
		if len(content) >= 12 && string(content[:5]) == "Adobe" {
			d.adobe, d.transform = true, content[11]
		}
	default:
		return unsupportedFrame(m)
	}
	return nil
}

// unsupportedFrame refuses frames of other processes; it is nil for other segments.
func unsupportedFrame(m uint8) error {
	if m < MarkerSOF0 || m > markerSOF15 || m == MarkerDHT || m == markerJPG || m == markerDAC {
		return nil
	}
	process := "hierarchical"
	switch m {
	case 0xC3:
		process = "lossless"
	case 0xC9, 0xCA:
		process = "arithmetic-coded"
	case 0xCB:
		process = "lossless arithmetic-coded"
	}
	return fmt.Errorf("%s JPEG is not supported", process)
}

// readFrame reads what the image is made of and makes room for it.
func (d *jpegDecoder) readFrame(m uint8, content []byte) error {
	if d.components != nil {
		return errors.New("the JPEG has two frames")
	}
	w, h, n, err := frameSize(content)
	if err != nil {
		return err
	}
	if err := scene.Plausible(w, h, PixelsPerByte, len(d.data)); err != nil {
		return err
	}
	d.width, d.height, d.progressive = w, h, m == markerSOF2
	components := make([]jpegComponent, n)
	for i := range components {
		c, spec := &components[i], content[6+3*i:]
		c.id, c.h, c.v, c.quantIndex = spec[0], int(spec[1]>>4), int(spec[1]&15), spec[2]
		if c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 {
			return fmt.Errorf("component %d has %d x %d samples in a unit", i+1, c.h, c.v)
		}
		for _, other := range components[:i] {
			if other.id == c.id {
				return fmt.Errorf("two components are numbered %d", c.id)
			}
		}
		d.hMax, d.vMax = max(d.hMax, c.h), max(d.vMax, c.v)
	}
	for i := range components {
		c := &components[i]
		if d.hMax%c.h != 0 || d.vMax%c.v != 0 {
			return fmt.Errorf("component %d of %d x %d samples where others have %d x %d is not supported", i+1, c.h,
				c.v, d.hMax, d.vMax)
		}
		c.width, c.height = ceilDiv(w*c.h, d.hMax), ceilDiv(h*c.v, d.vMax)
		c.wide, c.high = ceilDiv(c.width, 8), ceilDiv(c.height, 8)
		c.pix = pixelpool.New(64 * c.wide * c.high)
		if d.progressive {
			c.coefs = make([][64]int16, c.wide*c.high)
		}
		for k := range c.bit {
			c.bit[k] = -1
		}
	}
	d.components = components
	return nil
}

// frameSize reads a frame's header; content is long enough for its components.
func frameSize(content []byte) (width, height, components int, err error) {
	if len(content) < 6 {
		return 0, 0, 0, errors.New("the frame header is cut short")
	}
	if bits := content[0]; bits != 8 {
		return 0, 0, 0, fmt.Errorf("JPEG of %d bits a sample is not supported", bits)
	}
	height, width = int(binary.BigEndian.Uint16(content[1:])), int(binary.BigEndian.Uint16(content[3:]))
	n := int(content[5])
	switch {
	case width == 0 || height == 0:
		return 0, 0, 0, fmt.Errorf("the header claims %d x %d pixels", width, height)
	case n != 1 && n != 3 && n != 4:
		return 0, 0, 0, fmt.Errorf("JPEG of %d components is not supported", n)
	case len(content) < 6+3*n:
		return 0, 0, 0, errors.New("the frame header is cut short")
	}
	return width, height, n, nil
}

// Size reads the size in pixels from a JPEG's header.
func Size(r io.Reader) (width, height int, err error) {
	err = Segments(r, func(m uint8, n int, content io.Reader) (done bool, err error) {
		if m != MarkerSOF0 && m != markerSOF1 && m != markerSOF2 {
			return false, unsupportedFrame(m)
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(content, frame); err != nil {
			return true, err
		}
		width, height, _, err = frameSize(frame)
		return true, err
	})
	if err == nil && width == 0 {
		err = errNoFrame
	}
	return width, height, err
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func (d *jpegDecoder) readHuffman(content []byte) error {
	for len(content) > 0 {
		if len(content) < 17 {
			return errHuffman
		}
		class, id := content[0]>>4, content[0]&15
		counts := [16]uint8(content[1:17])
		n := 0
		for _, c := range counts {
			n += int(c)
		}
		content = content[17:]
		if class > 1 || id > 3 || n > 256 || n > len(content) {
			return errHuffman
		}
		table, err := newHuffTable(counts, content[:n])
		if err != nil {
			return err
		}
		d.codes[class][id] = table
		content = content[n:]
	}
	return nil
}

func (d *jpegDecoder) readQuantisation(content []byte) error {
	for len(content) > 0 {
		wide, id := int(content[0]>>4), content[0]&15
		size := 64 * (1 + wide)
		if wide > 1 || id > 3 || len(content) < 1+size {
			return errors.New("a quantisation table is invalid")
		}
		table := &[64]int16{}
		for k, v := range content[1 : 1+size] {
			if wide == 0 {
				table[k] = int16(v)
			} else {
				table[k/2] = table[k/2]<<8 | int16(v)
			}
		}
		d.quant[id] = table
		content = content[1+size:]
	}
	return nil
}

// complete says whether later segments cannot change the image: all components have been read, every bit of them.
func (d *jpegDecoder) complete() bool {
	for i := range d.components {
		for _, b := range d.components[i].bit {
			if b != 0 {
				return false
			}
		}
	}
	return len(d.components) > 0
}

// atEnd checks that the marker of the end came after all components. Progressive files that leave out details are
// whole.
func (d *jpegDecoder) atEnd() error {
	for i := range d.components {
		if d.components[i].bit[0] < 0 {
			return fmt.Errorf("component %d has no data", i+1)
		}
	}
	if len(d.components) == 0 {
		return errNoFrame
	}
	return nil
}
