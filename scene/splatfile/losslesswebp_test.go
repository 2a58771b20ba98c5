package splatfile

import (
	"bytes"
	"image"
	"testing"

	"golang.org/x/image/webp"
)

// checkLossless encodes an image, decodes it with another's decoder, and compares every byte.
func checkLossless(t *testing.T, m *losslessImage) []byte {
	t.Helper()
	data, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := webp.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%d x %d pixels of %d channels: %v", m.width, m.height, m.channels, err)
	}
	img := decoded.(*image.NRGBA)
	if img.Rect.Dx() != m.width || img.Rect.Dy() != m.height {
		t.Fatalf("%v, want %d x %d", img.Rect, m.width, m.height)
	}
	for i := range m.width * m.height {
		want := [4]uint8{3: 255}
		if m.channels*i < len(m.pixels) {
			copy(want[:], m.pixels[m.channels*i:m.channels*(i+1)])
		}
		if got := [4]uint8(img.Pix[4*i:]); got != want {
			t.Fatalf("%d x %d pixels of %d channels: pixel %d is %v, want %v", m.width, m.height, m.channels, i, got,
				want)
		}
	}
	return data
}

func FuzzLosslessWebP(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 255, 255, 255, 0, 1, 2, 3, 4}, uint8(4), uint16(2))
	f.Add([]byte{7}, uint8(1), uint16(1))
	f.Add([]byte("abcabcabcabcabdabcabcaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), uint8(3), uint16(5))
	f.Fuzz(func(t *testing.T, pixels []byte, channels uint8, width uint16) {
		m := &losslessImage{channels: int(channels)%4 + 1, width: int(width)%700 + 1}
		m.pixels = pixels[:len(pixels)/m.channels*m.channels]
		m.height = len(m.pixels)/m.channels/m.width + 1
		checkLossless(t, m)
	})
}
