package photo

import (
	"image"
	"image/color"

	"vksplat/internal/pixelpool"
	"vksplat/scene"
)

// fromImage converts an image of any form but YCbCr, whose chroma other code smooths, to RGBA with straight alpha. The
// pixels may be those of src.
func fromImage(src image.Image) scene.Image {
	b := src.Bounds()
	if pix := ownPixels(src); len(pix) == 4*b.Dx()*b.Dy() {
		return scene.Image{Width: b.Dx(), Height: b.Dy(), Pix: pix}
	}
	out := scene.Image{Width: b.Dx(), Height: b.Dy(), Pix: pixelpool.New(4 * b.Dx() * b.Dy())}
	for y := range out.Height {
		row := out.Pix[4*out.Width*y : 4*out.Width*(y+1)]
		fillRow(row, src, b.Min.X, b.Min.Y+y)
	}
	return out
}

// ownPixels returns the pixels of an image that holds them as RGBA with straight alpha already, nil of others.
func ownPixels(src image.Image) []uint8 {
	switch img := src.(type) {
	case *image.NRGBA:
		return img.Pix
	case *image.RGBA: // opaque: the decoders use it for pixels without alpha
		return img.Pix
	}
	return nil
}

// fillRow writes one row of src, from (x0, y) on. The forms that the decoders produce are read directly.
func fillRow(dst []uint8, src image.Image, x0, y int) {
	n := len(dst) / 4
	switch img := src.(type) {
	case *image.Gray:
		for x, v := range img.Pix[img.PixOffset(x0, y):][:n] {
			copy(dst[4*x:], []uint8{v, v, v, 255})
		}
	case *image.Gray16:
		fill16(dst, img.Pix[img.PixOffset(x0, y):], 2, []int{0, 0, 0})
	case *image.RGBA64: // opaque, as above
		fill16(dst, img.Pix[img.PixOffset(x0, y):], 8, []int{0, 2, 4})
	case *image.NRGBA64:
		fill16(dst, img.Pix[img.PixOffset(x0, y):], 8, []int{0, 2, 4, 6})
	case *image.Paletted:
		fillPalette(dst, img, x0, y)
	default:
		for x := range n {
			c := color.NRGBAModel.Convert(src.At(x0+x, y)).(color.NRGBA)
			copy(dst[4*x:], []uint8{c.R, c.G, c.B, c.A})
		}
	}
}

// fill16 writes a row of pixels of size bytes with big-endian 16-bit channels at the offsets, rounded to 8 bits;
// without a fourth they are opaque.
func fill16(dst, src []uint8, size int, channels []int) {
	for x := range len(dst) / 4 {
		dst[4*x+3] = 255
		for c, offset := range channels {
			p := src[x*size+offset:]
			dst[4*x+c] = uint8(((uint32(p[0])<<8|uint32(p[1]))*255 + 32895) >> 16)
		}
	}
}

// fillPalette writes a row of palette indices. An index beyond the palette is transparent black.
func fillPalette(dst []uint8, img *image.Paletted, x0, y int) {
	var palette [256]color.NRGBA
	for i, c := range img.Palette[:min(len(img.Palette), len(palette))] {
		palette[i] = color.NRGBAModel.Convert(c).(color.NRGBA)
	}
	for x, index := range img.Pix[img.PixOffset(x0, y):][:len(dst)/4] {
		c := palette[index]
		copy(dst[4*x:], []uint8{c.R, c.G, c.B, c.A})
	}
}
