package checkpoint

import (
	"encoding/binary"
	"fmt"
	"io"

	"vksplat/pipeline/failure"
)

// finiteWriter passes the numbers of a parameter on, whole splats at a time, until more than so many splats are not
// made of finite ones.
type finiteWriter struct {
	w      io.Writer
	f      field
	strays int // splats that may still be
}

func (c *finiteWriter) Write(p []byte) (int, error) {
	if !finite(p, c.f.dtype) {
		size := c.f.width * c.f.bytes()
		for at := 0; at < len(p); at += size {
			if !finite(p[at:at+size], c.f.dtype) {
				c.strays--
			}
		}
		if c.strays < 0 {
			return 0, fmt.Errorf("%w: %s holds NaN or infinite numbers", failure.ErrDiverged, c.f.name)
		}
	}
	return c.w.Write(p)
}

// finite reports whether no number of b, F32 or F16 little endian, is NaN or infinite, which is an exponent of ones
// alone. It looks at eight bytes at once: adding the exponent's lowest bit carries into the sign's place only where all
// bits are ones.
func finite(b []byte, dtype string) bool {
	exponents, lowest, signs := uint64(0x7f800000_7f800000), uint64(0x00800000_00800000), uint64(0x80000000_80000000)
	if dtype == "F16" {
		exponents, lowest, signs = 0x7c00_7c00_7c00_7c00, 0x0400_0400_0400_0400, 0x8000_8000_8000_8000
	}
	var carried uint64
	for ; len(b) >= 8; b = b[8:] {
		carried |= binary.LittleEndian.Uint64(b)&exponents + lowest
	}
	var rest [8]byte
	copy(rest[:], b)
	carried |= binary.LittleEndian.Uint64(rest[:])&exponents + lowest
	return carried&signs == 0
}
