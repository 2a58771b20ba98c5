package jpeg

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// maxScans bounds the time that a small progressive file can take; encoders write about ten.
const maxScans = 100

var (
	errCode    = errors.New("the coded data holds an invalid code")
	errRun     = errors.New("the coded data holds a run beyond its block")
	errShort   = errors.New("the coded data ends early")
	errNoTable = errors.New("a component uses a table that the file does not have")
)

// jpegScan is the part of the file that holds some components, or some bits of them.
type jpegScan struct {
	components []*jpegComponent
	first      int  // first and last coefficient, in stored order
	last       int  //
	shift      uint // of the bits that the scan holds
	refines    bool // adds one bit to what is known
	skip       int  // blocks that the current run of empty blocks still covers
	block      func(*jpegScan, *entropyData, *jpegComponent, *[64]int16) error
}

// readScan reads a scan's header and all of its data.
func (d *jpegDecoder) readScan(content []byte) error {
	if d.components == nil {
		return errors.New("a scan comes before the frame")
	}
	if d.scans++; d.scans > maxScans {
		return fmt.Errorf("the JPEG has more than %d scans", maxScans)
	}
	s, err := d.scanHeader(content)
	if err != nil {
		return err
	}
	for _, c := range s.components {
		if err := d.prepare(s, c); err != nil {
			return err
		}
	}
	return d.scanData(s)
}

func (d *jpegDecoder) scanHeader(content []byte) (*jpegScan, error) {
	if len(content) < 1 {
		return nil, errors.New("a scan header is cut short")
	}
	n := int(content[0])
	if n < 1 || n > 4 || len(content) < 4+2*n {
		return nil, errors.New("a scan header is cut short")
	}
	s := &jpegScan{last: 63}
	for i := range n {
		id, tables := content[1+2*i], content[2+2*i]
		c := d.component(id)
		if c == nil {
			return nil, fmt.Errorf("a scan is of component %d, which the frame does not have", id)
		}
		for _, other := range s.components {
			if other == c {
				return nil, fmt.Errorf("a scan has component %d twice", id)
			}
		}
		c.dcID, c.acID = tables>>4, tables&15
		s.components = append(s.components, c)
	}
	if !d.progressive {
		return s, nil
	}
	high := uint(content[3+2*n] >> 4)
	s.first, s.last, s.shift, s.refines = int(content[1+2*n]), int(content[2+2*n]), uint(content[3+2*n]&15), high != 0
	bands := s.first == 0 && s.last == 0 || s.first > 0 && s.last >= s.first && s.last <= 63 && n == 1
	if !bands || s.shift > 13 || s.refines && high != s.shift+1 {
		return nil, fmt.Errorf("a scan of coefficients %d to %d, bits %d to %d is invalid", s.first, s.last, high,
			s.shift)
	}
	s.block = [...]func(*jpegScan, *entropyData, *jpegComponent, *[64]int16) error{
		(*jpegScan).firstDC, (*jpegScan).refineDC, (*jpegScan).firstAC,
		(*jpegScan).refineAC}[2*min(s.first, 1)+min(int(high), 1)]
	return s, nil
}

func (d *jpegDecoder) component(id uint8) *jpegComponent {
	for i := range d.components {
		if d.components[i].id == id {
			return &d.components[i]
		}
	}
	return nil
}

func (d *jpegDecoder) prepare(s *jpegScan, c *jpegComponent) (err error) {
	if c.quant == nil {
		if c.quantIndex > 3 || d.quant[c.quantIndex] == nil {
			return errNoTable
		}
		c.quant = d.quant[c.quantIndex]
	}
	if s.first == 0 && !s.refines {
		if c.dc, err = d.table(0, c.dcID); err != nil {
			return err
		}
		if c.dc.widest > 15 {
			return errHuffman
		}
	}
	if s.last > 0 {
		if c.ac, err = d.table(1, c.acID); err != nil {
			return err
		}
	}
	for k := s.first; k <= s.last; k++ {
		c.bit[k] = int8(s.shift)
	}
	return nil
}

func (d *jpegDecoder) table(class int, id uint8) (*huffTable, error) {
	if id > 3 {
		return nil, errNoTable
	}
	if d.codes[class][id] == nil {
		d.codes[class][id] = standardTable(class, id)
	}
	if d.codes[class][id] == nil {
		return nil, errNoTable
	}
	return d.codes[class][id], nil
}

// scanData reads the MCUs of a scan. With one component they are the blocks that hold its samples; with several, the
// blocks of a unit of each, also beyond the edges.
func (d *jpegDecoder) scanData(s *jpegScan) error {
	across, down := ceilDiv(d.width, 8*d.hMax), ceilDiv(d.height, 8*d.vMax)
	if len(s.components) == 1 {
		across, down = s.components[0].wide, s.components[0].high
	}
	left, restart := 0, uint8(0) // MCUs before the next restart marker, and its number
	for y := range down {
		for x := range across {
			if left == 0 {
				if err := d.nextInterval(s, x+y > 0, restart); err != nil {
					return err
				}
				if left = d.interval; left == 0 {
					left = across * down
				}
				restart = (restart + uint8(min(x+y, 1))) & 7
			}
			left--
			if err := d.unit(s, x, y); err != nil {
				return d.dataError(err)
			}
		}
		if d.bits.exhausted() {
			return d.dataError(errShort)
		}
	}
	return nil
}

// dataError explains bad coded data: if it ran out, that is the cause.
func (d *jpegDecoder) dataError(err error) error {
	if !d.bits.exhausted() {
		return err
	}
	if _, err := d.nextMarker(); err != nil {
		return err
	}
	return errShort
}

// nextInterval gets the coded data up to the next marker, which begins with a restart marker unless it is the scan's
// first.
func (d *jpegDecoder) nextInterval(s *jpegScan, restarts bool, number uint8) error {
	if restarts {
		if d.bits.exhausted() {
			return d.dataError(errShort)
		}
		m, err := d.nextMarker()
		if err != nil {
			return err
		}
		if m != MarkerRST0+number {
			return fmt.Errorf("the coded data holds marker %#x instead of restart marker %d", m, number)
		}
	}
	d.pos += d.bits.load(d.data[d.pos:])
	s.skip = 0
	for _, c := range s.components {
		c.last = 0
	}
	return nil
}

// unit reads the MCU in column x and row y.
func (d *jpegDecoder) unit(s *jpegScan, x, y int) error {
	if len(s.components) == 1 {
		return d.blockAt(s, s.components[0], x, y)
	}
	for _, c := range s.components {
		for j := range c.v {
			for i := range c.h {
				if err := d.blockAt(s, c, x*c.h+i, y*c.v+j); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// blockAt reads the block of c in column x and row y; those beyond the edges are dropped.
func (d *jpegDecoder) blockAt(s *jpegScan, c *jpegComponent, x, y int) error {
	inside := x < c.wide && y < c.high
	if d.progressive {
		block := &d.beyond
		if inside {
			block = &c.coefs[y*c.wide+x]
		}
		return s.block(s, &d.bits, c, block)
	}
	var block [64]int16
	last, err := d.bits.block(c, &block)
	if err != nil {
		return err
	}
	if inside {
		stride := 8 * c.wide
		idct(c.pix[8*(y*stride+x):], stride, &block, last)
	}
	return nil
}

// block reads a block of a sequential frame, dequantised, row by row, and returns the last coefficient that is not
// zero, in stored order.
func (r *entropyData) block(c *jpegComponent, b *[64]int16) (last int, err error) {
	size, ok := r.symbol(c.dc)
	if !ok {
		return 0, errCode
	}
	c.last += r.value(uint(size))
	b[0] = int16(c.last) * c.quant[0]
	ac, quant, buf := c.ac, c.quant, r.buf
	bits, n, pos := r.bits, r.n, r.pos
	for k := 1; k < 64; k++ {
		if n < 32 {
			if pos <= len(buf)-8 {
				bits |= binary.BigEndian.Uint64(buf[pos:]) >> (n & 63)
			}
			pos += int(63-n) >> 3
			n |= 56
		}
		e := ac.look[bits>>(64-lookBits)]
		v := e.value()
		if l := e.wholeLen(); l != 0 {
			k += e.run()
			bits <<= l & 63
			n -= l
		} else {
			symbol, l := e.symbol(), e.codeLen()
			if l == 0 {
				if symbol, l = ac.long(uint32(bits >> 48)); l == 0 {
					err = errCode
					break
				}
			}
			size := uint(symbol & 15)
			bits <<= l & 63
			n -= l + size
			k += int(symbol >> 4)
			if size == 0 {
				if symbol == 0xF0 {
					continue
				}
				break
			}
			v = signed(uint32(bits>>((64-size)&63)), size)
			bits <<= size
		}
		if k > 63 {
			err = errRun
			break
		}
		b[zigzag[k]] = int16(v) * quant[k]
		last = k
	}
	r.bits, r.n, r.pos = bits, n, pos
	return last, err
}
