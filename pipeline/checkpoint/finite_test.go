package checkpoint

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"vksplat/pipeline/failure"
)

// TestFiniteWriter counts splats that are not made of finite numbers.
func TestFiniteWriter(t *testing.T) {
	words := map[string][]byte{}
	for _, x := range []float32{0, -1, math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)),
		float32(math.NaN())} {
		words["F32"] = binary.LittleEndian.AppendUint32(words["F32"], math.Float32bits(x))
	}
	for _, h := range []uint16{0, 0xbc00, 0x7bff, 0x7c00, 0xfc00, 0x7e01} { // 0, -1, 65504, the infinities, NaN
		words["F16"] = binary.LittleEndian.AppendUint16(words["F16"], h)
	}
	for dtype, all := range words {
		f := field{name: "x", dtype: dtype, width: 3}
		size := f.bytes()
		for i := range 6 {
			number := all[i*size : (i+1)*size]
			for at := range 9 { // three splats
				b := make([]byte, 9*size)
				copy(b[at*size:], number)
				if got := finite(b, dtype); got != (i < 3) {
					t.Errorf("%s: number %d at %d is finite: %v", dtype, i, at, got)
				}
				for strays := range 2 {
					sink := countingWriter(0)
					_, err := (&finiteWriter{&sink, f, strays}).Write(b)
					want := i >= 3 && strays == 0
					if errors.Is(err, failure.ErrDiverged) != want || want == (sink > 0) {
						t.Errorf("%s: number %d, %d strays: %v, %d bytes written", dtype, i, strays, err, sink)
					}
				}
			}
		}
	}
}

// countingWriter counts bytes.
type countingWriter int

func (w *countingWriter) Write(p []byte) (int, error) {
	*w += countingWriter(len(p))
	return len(p), nil
}
