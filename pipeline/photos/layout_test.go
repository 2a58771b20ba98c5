package photos

import (
	"slices"
	"testing"

	"vksplat/scene"
)

// TestPackColors packs pixels of every number modulo four.
func TestPackColors(t *testing.T) {
	for n := range 10 {
		var pix, want []byte
		for i := range n {
			rgb := []byte{byte(40*i + 1), byte(40*i + 2), byte(255 - i)}
			pix, want = append(append(pix, rgb...), 255), append(want, rgb...)
		}
		got := make([]byte, 4*colorWords(n, true))
		if !packColors(got, pix) || !slices.Equal(got[:3*n], want) {
			t.Errorf("%d pixels: %v, want %v", n, got, want)
		}
		for i := range n {
			pix[4*i+3] = 254
			if packColors(got, pix) {
				t.Errorf("%d pixels are opaque, of which number %d is not", n, i)
			}
			pix[4*i+3] = 255
		}
	}
}

// TestLayout packs photos where files are JPEGs, whatever they are called, and leaves room for masks where there
// may be any.
func TestLayout(t *testing.T) {
	for _, c := range []struct {
		cams []scene.Camera
		want Layout
	}{
		{[]scene.Camera{{Name: "a.jpg"}, {Name: "b/c.JPEG"}}, Layout{Packed: true}},
		{[]scene.Camera{{Name: "a.jpg"}, {Name: "b.png"}}, Layout{Packed: true}},
		{[]scene.Camera{{Name: "a.png"}, {Name: "b"}}, Layout{}},
		{[]scene.Camera{{Name: "pano.jpg/front.png", Path: "/x/pano.jpg", Lens: &scene.Lens{}}},
			Layout{Packed: true, Masked: true}},
		{[]scene.Camera{{Name: "a.jpg", Mask: "a.png"}}, Layout{Packed: true, Masked: true}},
	} {
		if got := LayoutOf(c.cams); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.cams[0].Name, got, c.want)
		}
	}
	for name, want := range map[string]int64{"a.jpg": 4 * (25 + 2), "a.png": 4 * (33 + 2)} {
		if n := (Layout{Packed: true, Masked: true}).Bytes(&scene.Camera{Name: name, Width: 11, Height: 3}); n != want {
			t.Errorf("%s: %d bytes for 33 pixels and their mask, want %d", name, n, want)
		}
	}
}
