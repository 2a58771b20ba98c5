package jpeg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
)

// lookBits is how many bits of a Huffman code are looked up at once. It is wide enough to hold most codes together with
// their coefficient's bits.
const lookBits = 10

// A lookEntry says what the next lookBits bits hold; 0 if they begin a longer code or none. Fields from the lowest bit
// on:
//
//	5 bits  length of code and value together, 0 if the value does not fit or there is none
//	5 bits  length of the code
//	8 bits  symbol: a run of zeros above 4 bits of the value's size
//	14 bits value, signed
type lookEntry uint32

func (e lookEntry) codeLen() uint  { return uint(e>>5) & 31 }
func (e lookEntry) symbol() uint8  { return uint8(e >> 10) }
func (e lookEntry) wholeLen() uint { return uint(e) & 31 }
func (e lookEntry) run() int       { return int(e>>14) & 15 }
func (e lookEntry) value() int32   { return int32(e) >> 18 }

type huffTable struct {
	look    [1 << lookBits]lookEntry
	beyond  [17]uint32 // by length, the first 16 bits that belong to longer codes
	offset  [17]int32  // by length, what a code's index among the symbols exceeds the code
	symbols [256]uint8
	widest  uint8 // largest symbol
}

var errHuffman = errors.New("a Huffman table is invalid")

// newHuffTable builds the table of the codes that counts (by length, from 1) and symbols (in the order of codes)
// define.
func newHuffTable(counts [16]uint8, symbols []uint8) (*huffTable, error) {
	t := &huffTable{}
	copy(t.symbols[:], symbols)
	code, index := 0, 0
	for l := 1; l <= 16; l++ {
		n := int(counts[l-1])
		t.offset[l] = int32(index - code)
		if code+n > 1<<l || index+n > len(symbols) {
			return nil, errHuffman
		}
		for i := range n {
			t.widest = max(t.widest, symbols[index+i])
			if l <= lookBits {
				t.fill(uint(l), uint32(code+i), symbols[index+i])
			}
		}
		code, index = code+n, index+n
		t.beyond[l] = uint32(code) << (16 - l)
		code <<= 1
	}
	return t, nil
}

// fill sets the entries of all bits that begin with a code of length l.
func (t *huffTable) fill(l uint, code uint32, symbol uint8) {
	rest := lookBits - l
	size := uint(symbol & 15)
	for tail := range uint32(1) << rest {
		e := lookEntry(l)<<5 | lookEntry(symbol)<<10
		if size > 0 && size <= rest {
			e |= lookEntry(l+size) | lookEntry(uint32(signed(tail>>(rest-size), size))<<18)
		}
		t.look[code<<rest|tail] = e
	}
}

// signed gives the coefficient that the size bits v stand for: those with a leading 0 are the negative ones.
func signed(v uint32, size uint) int32 {
	if v>>(size-1) == 0 {
		return int32(v) + 1 - 1<<size
	}
	return int32(v)
}

// long gives the symbol and the length of the code that the first 16 bits begin with, of those longer than lookBits;
// length 0 if there is none.
func (t *huffTable) long(first16 uint32) (symbol uint8, length uint) {
	for l := uint(lookBits + 1); l <= 16; l++ {
		if first16 < t.beyond[l] {
			return t.symbols[uint8(int32(first16>>(16-l))+t.offset[l])], l
		}
	}
	return 0, 0
}

// entropyData is the coded data between two markers, without the zeros stuffed behind 0xFF bytes. The buffer holds 8
// zeros behind it, for whole reads.
type entropyData struct {
	buf []byte
	// state of the reader: the next n bits are the highest of bits; those below repeat or precede what pos points at
	pos  int
	bits uint64
	n    uint
}

// load takes the coded data at the start of src and returns how many bytes of src it takes: up to the next marker, or
// all.
func (r *entropyData) load(src []byte) int {
	end := codedLength(src)
	*r = entropyData{buf: slices.Grow(r.buf[:0], end+8)}
	for rest := src[:end]; ; {
		at := bytes.IndexByte(rest, 0xFF)
		if at < 0 {
			r.buf = append(r.buf, rest...)
			break
		}
		r.buf = append(r.buf, rest[:at+1]...)
		rest = rest[behindFF(rest, at)+1:]
	}
	r.buf = append(r.buf, 0, 0, 0, 0, 0, 0, 0, 0)
	return end
}

// codedLength counts the bytes before the next marker.
func codedLength(src []byte) int {
	for at := 0; ; {
		run := bytes.IndexByte(src[at:], 0xFF)
		if run < 0 {
			return len(src)
		}
		at += run
		next := behindFF(src, at)
		if next == len(src) || src[next] != 0 {
			return at
		}
		at = next + 1
	}
}

// behindFF gives the place of the first other byte behind the 0xFF at a place; more of them fill the space.
func behindFF(src []byte, at int) int {
	for at < len(src) && src[at] == 0xFF {
		at++
	}
	return at
}

// exhausted says whether more bits were taken than there are.
func (r *entropyData) exhausted() bool { return r.pos*8-int(r.n) > (len(r.buf)-8)*8 }

// fill makes sure that at least 56 bits are there; beyond the end they are zeros.
func (r *entropyData) fill() {
	if r.pos <= len(r.buf)-8 {
		r.bits |= binary.BigEndian.Uint64(r.buf[r.pos:]) >> r.n
	}
	r.pos += int(63-r.n) >> 3
	r.n |= 56
}

// take returns the next n bits, at most 16.
func (r *entropyData) take(n uint) uint32 {
	if r.n < n {
		r.fill()
	}
	v := uint32(r.bits >> (64 - n))
	r.bits <<= n
	r.n -= n
	return v
}

// symbol returns the next symbol of t; not ok if the bits are no code.
func (r *entropyData) symbol(t *huffTable) (symbol uint8, ok bool) {
	if r.n < 16 {
		r.fill()
	}
	e := t.look[r.bits>>(64-lookBits)]
	symbol, l := e.symbol(), e.codeLen()
	if l == 0 {
		if symbol, l = t.long(uint32(r.bits >> 48)); l == 0 {
			return 0, false
		}
	}
	r.bits <<= l
	r.n -= l
	return symbol, true
}

// value returns the next coefficient of that size in bits, 0 to 15.
func (r *entropyData) value(size uint) int32 {
	if size == 0 {
		return 0
	}
	return signed(r.take(size), size)
}
