package check

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// pictureCases are those of the kernels that make pictures for files.
func pictureCases() []Case {
	return []Case{
		newCase("pack", "sizes", func(t *trial) error {
			return each([]int{0, 1, 255, 256, 257, 5000}, func(n int) error {
				pixels := make([][4]float32, n)
				for i := range pixels {
					for k := range 4 {
						pixels[i][k] = 1.4*t.Float32() - 0.2
					}
				}
				return checkPack(t, pixels)
			})
		}),
		newCase("pack", "poison", func(t *trial) error {
			var pixels [][4]float32
			inf := float32(math.Inf(1))
			for _, x := range []float32{0, float32(math.NaN()), inf, -inf, 1e-40, -1e-40, 1, 255.5 / 255, 1.0 / 510,
				math.MaxFloat32} {
				pixels = append(pixels, [4]float32{x, 0.5, 1, 0.25}, [4]float32{0.1, x, 0.9, x},
					[4]float32{0.2, 0.3, x, 1})
			}
			return checkPack(t, pixels)
		}),
		rasterCase("rasterize", "a band alone gives the same bytes", checkRasterAlone),
	}
}

func checkPack(t *trial, pixels [][4]float32) error {
	l := t.list()
	out := output[uint32](l, "packed_pixels", len(pixels))
	l.r.Dispatch(&shaders.Pack{Render: input(l, "render", pixels), PackedPixels: out.Slice,
		Push: shaders.PackPush{N: uint32(len(pixels))}}, vk.Items(len(pixels)+300, 256))
	if err := l.run(); err != nil {
		return err
	}
	for i, got := range out.got {
		wide := ref.ConvertSlice[float64](pixels[i][:])
		want := ref.Pack([4]float64(wide))
		for k := range 4 {
			a, b := int(got>>(8*k)&255), int(want>>(8*k)&255)
			exact := 255 * wide[k]
			if k == 3 {
				exact = 255 * (1 - wide[3])
			}
			// Where float32 cannot tell on which side of a half a value lies, either byte will do.
			if a != b && !(max(a-b, b-a) == 1 && math.Abs(exact-math.Floor(exact)-0.5) < 1e-4) {
				return fmt.Errorf("binding packed_pixels: byte %d of pixel %d is %d, want %d of %v", k, i, a, b,
					wide[k])
			}
		}
	}
	return nil
}

// checkRasterAlone compares bands that are drawn each into memory of its own with the same variant of the kernel in one
// band.
func checkRasterAlone(t *trial) error {
	const width, height, bands = 70, 90, 3
	p, v := t.ellipses(300, width, height), t.camera(width, height)
	draw := func(band, bands int) ([][4]float32, int, error) {
		l := t.list()
		l.alone = true
		out := l.rasterize(p, v, band, bands, false, nil)
		err := l.run()
		g := v.Grid().Band(band, bands)
		first := g.RowFirst * layout.TileSize * width
		n := min(height, g.RowEnd*layout.TileSize)*width - first
		pixels, err2 := out.render.written(n)
		return pixels, first, errors.Join(err, err2)
	}
	whole, _, err := draw(0, 1)
	if err != nil {
		return err
	}
	if err := compareImage(whole, image64(p, v, ref.NewLists(p, v.Grid()))); err != nil {
		return err
	}
	for band := range bands {
		part, first, err := draw(band, bands)
		if err == nil && !slices.Equal(part, whole[first:first+len(part)]) {
			err = equal("render", part, whole[first:first+len(part)])
		}
		if err != nil {
			return err
		}
	}
	return nil
}
