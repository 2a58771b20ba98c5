package photo

import (
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/adler32"
	"hash/crc32"
	"image"
	"image/png"
	"io"
)

// EncodePNG writes a picture the fast way: pictures are written by the hundred.
func EncodePNG(w io.Writer, m image.Image) error {
	if m, ok := m.(*image.RGBA); ok && m.Opaque() {
		return encodeRGB(w, m.Rect.Dx(), m.Rect.Dy(), func(y int, rgb []uint8) {
			row := m.Pix[y*m.Stride:]
			for i, k := 0, 0; i < len(rgb); i, k = i+3, k+4 {
				rgb[i], rgb[i+1], rgb[i+2] = row[k], row[k+1], row[k+2]
			}
		})
	}
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(w, m); err != nil {
		return fmt.Errorf("write png: %w", err)
	}
	return nil
}

// pngBand is how many bytes of filtered rows, about, are packed in one way and make one chunk of a file.
const pngBand = 128 << 10

// encodeRGB writes an opaque picture as PNG. paint fills row y, three bytes a pixel; it is called row by row.
//
// The encoder of the standard library asks for each pixel through an interface, tries five filters, and looks for
// repeated strings. Filtered photos have none: Huffman codes alone make them as small, in a fifth of the time.
func encodeRGB(w io.Writer, width, height int, paint func(y int, rgb []uint8)) error {
	if width <= 0 || height <= 0 {
		return fmt.Errorf("write png: a picture of %dx%d pixels", width, height)
	}
	p := &pngWriter{w: w, band: make([]byte, 0, pngBand+1+3*width), sum: adler32.New()}
	err := p.start(width, height)
	above, row := make([]uint8, 3*width), make([]uint8, 3*width)
	for y := 0; y < height && err == nil; y++ {
		paint(y, row)
		p.band = appendFiltered(p.band, row, above)
		above, row = row, above
		if len(p.band) >= pngBand || y == height-1 {
			err = p.pack(y == height-1)
		}
	}
	if err == nil {
		err = p.chunk("IEND", nil)
	}
	if err != nil {
		return fmt.Errorf("write png: %w", err)
	}
	return nil
}

const filterAverage = 3 // PNG's number of it

// appendFiltered appends a row of pixels as differences from the mean of the pixels to the left and above.
func appendFiltered(out []byte, row, above []uint8) []byte {
	at := len(out) + 1
	out = append(append(out, filterAverage), row...)
	to := out[at:][:len(row)]
	for i, x := range above[:3] {
		to[i] -= x / 2
	}
	left, up := row[:len(row)-3], above[3:len(row)]
	for i, x := range left {
		to[i+3] -= uint8((int(x) + int(up[i])) / 2)
	}
	return out
}

type pngWriter struct {
	w          io.Writer
	band       []byte      // filtered rows that are not packed yet
	sum        hash.Hash32 // Adler-32 of those that are
	begun      bool
	huff, runs *flate.Writer
	packed     []byte
}

func (p *pngWriter) Write(data []byte) (int, error) {
	p.packed = append(p.packed, data...)
	return len(data), nil
}

// start writes what comes before the pixels.
func (p *pngWriter) start(width, height int) error {
	if _, err := io.WriteString(p.w, "\x89PNG\r\n\x1a\n"); err != nil {
		return err
	}
	size := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(width)), uint32(height))
	const bits, rgb = 8, 2
	return p.chunk("IHDR", append(size, bits, rgb, 0, 0, 0))
}

// pack writes the band as a chunk. Each is packed on its own, so that the way may change from one to the next.
func (p *pngWriter) pack(last bool) error {
	p.packed = p.packed[:0]
	if !p.begun {
		p.begun = true
		p.packed = append(p.packed, 0x78, 0x01) // zlib's header: a window of 32 KiB, the fastest way
	}
	f, err := p.packer()
	if err != nil {
		return err
	}
	f.Reset(p)
	if _, err := f.Write(p.band); err != nil {
		return err
	}
	_, _ = p.sum.Write(p.band) // never fails
	end := f.Flush             // to a whole byte
	if last {
		end = f.Close
	}
	if err := end(); err != nil {
		return err
	}
	if last {
		p.packed = binary.BigEndian.AppendUint32(p.packed, p.sum.Sum32())
	}
	p.band = p.band[:0]
	return p.chunk("IDAT", p.packed)
}

// packer returns what packs the band: with Huffman codes alone a byte takes a bit at least, so that flat areas are
// worth a search for runs.
func (p *pngWriter) packer() (f *flate.Writer, err error) {
	zeros := 0
	for _, x := range p.band {
		if x == 0 {
			zeros++
		}
	}
	to, level := &p.huff, flate.HuffmanOnly
	if zeros > len(p.band)/2 {
		to, level = &p.runs, flate.BestSpeed
	}
	if *to == nil {
		*to, err = flate.NewWriter(p, level)
	}
	return *to, err
}

func (p *pngWriter) chunk(kind string, data []byte) error {
	head := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), kind...)
	sum := crc32.Update(crc32.ChecksumIEEE(head[4:]), crc32.IEEETable, data)
	for _, part := range [][]byte{head, data, binary.BigEndian.AppendUint32(nil, sum)} {
		if _, err := p.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
