package jpeg

import (
	"bytes"
	"image"
	stdjpeg "image/jpeg"
	"math/rand/v2"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
)

// A transform that leaves out zeros gives the samples of the whole one, also where they are far out of range.
func TestIDCTShortcuts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const stride = 11
	for n := range 20000 {
		var block [64]int16
		last := n % (lastOfCorner + 1)
		for k := range last + 1 {
			block[zigzag[k]] = int16(rng.IntN(1<<uint(1+n%12)) - 1<<uint(n%12))
		}
		var got, want [8 * stride]uint8
		idct(got[:], stride, &block, last)
		idctFull(want[:], stride, &block)
		if got != want {
			t.Fatalf("last %d, block %v:\ngot  %v\nwant %v", last, block, got, want)
		}
	}
}

func TestHuffmanTable(t *testing.T) {
	counts := [16]uint8{0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1}
	table := must.Get(newHuffTable(counts, []uint8{0x01, 0x1A, 0x00, 0xF0, 0x33}))(t)
	var r entropyData
	// Codes 00, 01, 100, 101000000000, 1010000000010000, then one that is none.
	r.load([]byte{0b00_01_100_1, 0b01000000, 0b000_10100, 0b00000010, 0b000_11111, 0xFF, 0})
	for i, want := range []uint8{0x01, 0x1A, 0x00, 0xF0, 0x33} {
		if got, ok := r.symbol(table); !ok || got != want {
			t.Fatalf("symbol %d is %#x, %v, want %#x", i, got, ok, want)
		}
	}
	if got, ok := r.symbol(table); ok {
		t.Errorf("no code gives %#x", got)
	}
	if _, err := newHuffTable([16]uint8{3}, []uint8{1, 2, 3}); err == nil {
		t.Error("three codes of one bit are accepted")
	}
	if _, err := newHuffTable([16]uint8{1, 1}, []uint8{1}); err == nil {
		t.Error("two codes of one symbol are accepted")
	}
}

// TestJPEGTablesFirst reads files whose Huffman tables stand before the frame, as ffmpeg writes them.
func TestJPEGTablesFirst(t *testing.T) {
	var b bytes.Buffer
	must.Do(t, stdjpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 24, 16)), nil))
	var frame, tables, rest []byte
	data := b.Bytes()
	at := 2
	for data[at+1] != MarkerSOS {
		n := 2 + int(data[at+2])<<8 + int(data[at+3])
		switch data[at+1] {
		case MarkerSOF0:
			frame = data[at : at+n]
		default:
			tables = append(tables, data[at:at+n]...)
		}
		at += n
	}
	rest = data[at:]
	moved := slices.Concat(data[:2], tables, frame, rest)
	if w, h, err := Size(bytes.NewReader(moved)); err != nil || w != 24 || h != 16 {
		t.Errorf("%d x %d, %v", w, h, err)
	}
	want := must.Get(Decode(data))(t)
	if got, err := Decode(moved); err != nil || !bytes.Equal(got.Pix, want.Pix) {
		t.Errorf("other pixels, %v", err)
	}
}
