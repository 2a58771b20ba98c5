package splatfile

import (
	"github.com/kelindar/bitmap"

	"vksplat/scene"
)

// Keep leaves the splats whose centres, in the capture's frame, are wanted and that something can draw. It reads the
// model once and keeps a bit of each splat.
func Keep(model Source, wanted func(at [3]float64) bool) (Source, error) {
	info := model.Info()
	origin := originOf(info)
	keep, at := make(bitmap.Bitmap, (info.N+63)/64), 0
	err := model.Read(func(piece *scene.Splats) error {
		for i := range piece.N {
			p := origin
			for k := range p {
				p[k] += float64(piece.Means[3*i+k])
			}
			if broken(piece, i) == nil && wanted(p) {
				keep.Set(uint32(at + i))
			}
		}
		at += piece.N
		return nil
	})
	info.N = keep.Count()
	return &selected{model, info, keep}, err
}
