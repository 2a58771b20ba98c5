package jpeg

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

const MaxSegments = 1 << 10

// Segments calls visit for each segment of a JPEG before the first scan, with its marker, its length in bytes and its
// content, until it says done.
func Segments(r io.Reader, visit func(m uint8, n int, content io.Reader) (done bool, err error)) error {
	b := bufio.NewReader(r)
	if _, err := b.Discard(2); err != nil {
		return err
	}
	for range MaxSegments {
		m, err := seekMarker(b)
		if err != nil || m == MarkerSOS || m == MarkerEOI {
			return err
		}
		if standsAlone(m) {
			continue
		}
		var field [2]byte
		if _, err := io.ReadFull(b, field[:]); err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint16(field[:])) - len(field)
		if n < 0 {
			return errors.New("a segment is shorter than its length field")
		}
		content := &io.LimitedReader{R: b, N: int64(n)}
		if done, err := visit(m, n, content); done || err != nil {
			return err
		}
		if _, err := b.Discard(int(content.N)); err != nil {
			return err
		}
	}
	return errors.New("the header has too many segments")
}

// seekMarker reads up to and including the next marker, past stray bytes.
func seekMarker(b *bufio.Reader) (uint8, error) {
	for before := uint8(0); ; {
		c, err := b.ReadByte()
		if err != nil {
			return 0, err
		}
		if before == 0xFF && c != 0 && c != 0xFF {
			return c, nil
		}
		before = c
	}
}
