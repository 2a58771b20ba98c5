package photos

import (
	"encoding/binary"
	"path"
	"slices"
	"strings"

	"vksplat/scene"
	"vksplat/shaders/layout"
)

// Layout is what there is room for in the device cache of photos. A photo that needs more, a transparent one among
// opaque ones, is not kept there: it is brought to the device for each of its steps.
type Layout struct {
	Packed bool // opaque photos have three bytes a pixel, and JPEG files no room for more
	Masked bool // masks
}

// LayoutOf returns the layout for the photos of cams: JPEG files are opaque, others may not be, and masks have files,
// or come with lenses that leave pixels without a source.
func LayoutOf(cams []scene.Camera) Layout {
	return Layout{
		Packed: slices.ContainsFunc(cams, func(c scene.Camera) bool { return isJPEG(&c) }),
		Masked: slices.ContainsFunc(cams, func(c scene.Camera) bool {
			return c.Mask != "" || c.Lens != nil || c.Distortion != nil && c.Distortion.Blind
		}),
	}
}

// isJPEG reports whether the file of a camera's photo is a JPEG by its name.
func isJPEG(c *scene.Camera) bool {
	name := c.Path
	if name == "" {
		name = c.Name
	}
	ext := strings.ToLower(path.Ext(name))
	return ext == ".jpg" || ext == ".jpeg"
}

// colorWords returns the number of words for the colours of n pixels.
func colorWords(pixels int, packed bool) int {
	if packed {
		return (3*pixels + 3) / 4
	}
	return pixels
}

func (l Layout) Bytes(c *scene.Camera) int64 {
	words := colorWords(c.Width*c.Height, l.Packed && isJPEG(c))
	if l.Masked {
		words += MaskWords(c.Width * c.Height)
	}
	return 4 * int64(words)
}

// Totals returns the bytes of all photos and of the largest.
func (l Layout) Totals(cams []scene.Camera) (total, most int64) {
	for i := range cams {
		b := l.Bytes(&cams[i])
		total, most = total+b, max(most, b)
	}
	return total, most
}

// Slots returns how many photos a cache of that many bytes holds; all says that it holds all. A cache that does not
// hold all has slots for the largest.
func (l Layout) Slots(cams []scene.Camera, bytes int64) (n int, all bool) {
	total, most := l.Totals(cams)
	if total <= bytes {
		return len(cams), true
	}
	return int(min(bytes/most, int64(len(cams)-1))), false
}

// Stage writes a photo as kernels read it: its colours, packed if that is wanted and it is opaque, then its mask if it
// has one. It returns the bytes written and the PHOTO_* bits.
func Stage(dst []byte, m scene.Image, packed bool) (n int64, flags uint32) {
	words := len(m.Pix) / 4
	if packed && packColors(dst, m.Pix) {
		words, flags = colorWords(words, true), layout.PhotoPacked
	} else {
		copy(dst, m.Pix)
	}
	if m.Mask != nil {
		flags |= layout.PhotoMasked
	}
	for _, w := range m.Mask {
		binary.LittleEndian.PutUint32(dst[4*words:], w)
		words++
	}
	return 4 * int64(words), flags
}

// packColors writes the colours of RGBA8 pixels without their alpha, whole words of them, and reports whether all were
// opaque.
func packColors(dst, pix []byte) (opaque bool) {
	and, word := ^uint32(0), binary.LittleEndian.Uint32
	for len(pix) >= 16 {
		a, b, c, d := word(pix), word(pix[4:]), word(pix[8:]), word(pix[12:])
		and &= a & b & c & d
		binary.LittleEndian.PutUint32(dst, a&0xFFFFFF|b<<24)
		binary.LittleEndian.PutUint32(dst[4:], b>>8&0xFFFF|c<<16)
		binary.LittleEndian.PutUint32(dst[8:], c>>16&0xFF|d<<8)
		dst, pix = dst[12:], pix[16:]
	}
	var rest [12]byte
	n := 0
	for ; len(pix) > 0; pix = pix[4:] {
		and &= word(pix)
		n += copy(rest[n:], pix[:3])
	}
	copy(dst, rest[:(n+3)/4*4])
	return and>>24 == 255
}
