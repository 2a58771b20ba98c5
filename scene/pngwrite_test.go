package scene

import (
	"bytes"
	"errors"
	"image/png"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
)

// TestWritePNGPixels reads pictures of one and of many stripes back with the standard library, and wants the same bytes of any number of cores.
func TestWritePNGPixels(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {2, 700}, {1000, 300}, {100000, 4}, {640, 2}} {
		w, h := size[0], size[1]
		rng := rand.New(rand.NewPCG(1, uint64(w)))
		pix := make([]uint8, 3*w*h)
		for i := range pix {
			pix[i] = uint8(i/7 + rng.IntN(1+i%60))
		}
		paint := func(y int, row []uint8) { copy(row, pix[3*w*y:]) }
		var file bytes.Buffer
		if err := writePNG(&file, w, h, paint); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatalf("%dx%d: %v", w, h, err)
		}
		got := fromImage(img)
		if got.Width != w || got.Height != h {
			t.Fatalf("%dx%d became %dx%d", w, h, got.Width, got.Height)
		}
		for i := range w * h {
			if !bytes.Equal(got.Pix[4*i:4*i+3], pix[3*i:3*i+3]) || got.Pix[4*i+3] != 0xff {
				t.Fatalf("%dx%d: pixel %d is %v, want %v", w, h, i, got.Pix[4*i:4*i+4], pix[3*i:3*i+3])
			}
		}
		cores := runtime.GOMAXPROCS(1)
		var alone bytes.Buffer
		err = writePNG(&alone, w, h, paint)
		runtime.GOMAXPROCS(cores)
		if err != nil || !bytes.Equal(alone.Bytes(), file.Bytes()) {
			t.Errorf("%dx%d: %d bytes of one core, %d of %d, or others: %v", w, h, alone.Len(), file.Len(), cores, err)
		}
	}
}

// TestWritePNGErrors wants the error of a full disk, and no memory for sizes that make no sense.
func TestWritePNGErrors(t *testing.T) {
	full := errors.New("full")
	if err := writePNG(failingWriter{full}, 9, 9, func(int, []uint8) {}); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
	for _, size := range [][2]int{{0, 1}, {1, -1}, {1 << 40, 1 << 40}} {
		if err := writePNG(io.Discard, size[0], size[1], nil); err == nil {
			t.Errorf("a picture of %dx%d was written", size[0], size[1])
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
