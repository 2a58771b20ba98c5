package scene

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"io"
)

// pngStripe is about how many bytes of pixels are compressed by themselves. What one stripe repeats of another is not found, which costs less than a
// hundredth of the file; in return all cores compress.
const pngStripe = 256 << 10

// pngPainter fills row y of a picture, three bytes a pixel. It is called from several goroutines, rows in any order, some twice.
type pngPainter func(y int, rgb []uint8)

// writePNG writes a picture as an opaque 8-bit PNG. The standard library's encoder uses one core and wants the whole picture in memory; here memory is a few
// stripes, whatever the size of the picture. The bytes depend on the picture alone, not on the number of cores.
func writePNG(w io.Writer, width, height int, paint pngPainter) error {
	if width <= 0 || height <= 0 || width > maxPixels/height {
		return fmt.Errorf("scene: write png: %dx%d pixels: %w", width, height, errShape)
	}
	head := binary.BigEndian.AppendUint32([]byte("IHDR"), uint32(width))
	head = binary.BigEndian.AppendUint32(head, uint32(height))
	head = append(head, 8, 2, 0, 0, 0) // bits, RGB, deflate, filter by row, not interlaced
	if _, err := w.Write(append([]byte("\x89PNG\r\n\x1a\n"), chunk(head)...)); err != nil {
		return err
	}
	rows := max(1, pngStripe/(3*width))
	n := (height + rows - 1) / rows
	sum := uint32(1) // adler32 of nothing
	batch := make([]pngCompressor, min(n, comparingWorkers))
	for first := 0; first < n; first += len(batch) {
		parallelWorkers(min(len(batch), n-first), comparingWorkers, func() func(i int) {
			return func(i int) {
				y := (first + i) * rows
				batch[i].compress(width, y, min(y+rows, height), y+rows >= height, paint)
			}
		})
		for i := range min(len(batch), n-first) {
			c := &batch[i]
			sum = joinAdler(sum, c.adler, c.length)
			if _, err := w.Write(c.chunk); err != nil || c.err != nil {
				return errors.Join(c.err, err)
			}
		}
	}
	end := append(chunk(binary.BigEndian.AppendUint32([]byte("IDAT"), sum)), chunk([]byte("IEND"))...)
	_, err := w.Write(end)
	return err
}

// chunk makes a chunk of its type and data.
func chunk(data []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(data)-4))
	out = append(out, data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(data))
}

// pngCompressor makes chunks of stripes, one after the other, in memory that it keeps.
type pngCompressor struct {
	deflate *flate.Writer
	raw     []byte // a row's filter and its bytes, row by row
	row, up []byte // pixels of a row and of the one above
	out     bytes.Buffer
	chunk   []byte // of the last stripe
	adler   uint32 // of its raw bytes, and their number
	length  int
	err     error
}

// compress makes the chunk of rows y to end.
func (c *pngCompressor) compress(width, y, end int, last bool, paint pngPainter) {
	if c.deflate == nil {
		c.row, c.up = make([]byte, 3*width), make([]byte, 3*width)
		c.deflate, _ = flate.NewWriter(nil, flate.BestSpeed) // an error is of the level alone
	}
	c.raw = c.raw[:0]
	begin := y == 0
	if !begin {
		paint(y-1, c.row)
	}
	for ; y < end; y++ {
		c.row, c.up = c.up, c.row
		paint(y, c.row)
		c.raw = appendFiltered(c.raw, c.row, c.up)
	}
	c.out.Reset()
	c.out.WriteString("\x00\x00\x00\x00IDAT")
	if begin {
		c.out.WriteString("\x78\x01") // zlib: a window of 32 KiB, the fastest level
	}
	c.deflate.Reset(&c.out)
	_, c.err = c.deflate.Write(c.raw)
	if last {
		c.err = errors.Join(c.err, c.deflate.Close())
	} else {
		c.err = errors.Join(c.err, c.deflate.Flush()) // to a whole byte, so that another stripe can follow
	}
	data := c.out.Bytes()
	binary.BigEndian.PutUint32(data, uint32(len(data)-8))
	c.chunk = binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data[4:]))
	c.adler, c.length = adler32.Checksum(c.raw), len(c.raw)
}

// appendFiltered appends a row with the filter Paeth, which predicts a byte by that of its neighbours left, above and left above that is closest to
// left + above - left above. Above the first row is zero.
func appendFiltered(out, row, up []byte) []byte {
	const paeth, pixel = 4, 3
	out = append(out, paeth)
	for i := range min(pixel, len(row)) {
		out = append(out, row[i]-up[i])
	}
	for i := pixel; i < len(row); i++ {
		a, b, c := int(row[i-pixel]), int(up[i]), int(up[i-pixel])
		da, db := b-c, a-c
		dc := da + db
		da, db, dc = max(da, -da), max(db, -db), max(dc, -dc)
		p := c
		if da <= db && da <= dc {
			p = a
		} else if db <= dc {
			p = b
		}
		out = append(out, row[i]-uint8(p))
	}
	return out
}

// joinAdler returns the Adler-32 sum of two texts one after the other, of their sums and the second one's length (RFC 1950, section 8.2).
func joinAdler(first, second uint32, length int) uint32 {
	const base = 65521
	a1, b1, a2, b2 := uint64(first&0xffff), uint64(first>>16), uint64(second&0xffff), uint64(second>>16)
	a := (a1 + a2 + base - 1) % base
	b := (b1 + b2 + uint64(length)%base*((a1+base-1)%base)) % base
	return uint32(b<<16 | a)
}
