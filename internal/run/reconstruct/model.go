package reconstruct

import (
	"context"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/mapping"
	"vksplat/scene/photo"
)

// lensOf is the calibration that the search for a photo's camera begins with: the focal length that EXIF tells, or a
// guess.
func lensOf(path string, width, height int) mapping.Lens {
	focal, known := photo.FocalLength(path)
	if !known {
		focal = guessedFocal
	}
	focal *= float64(max(width, height))
	return mapping.Lens{FocalKnown: known, Calibration: scene.Calibration{Model: scene.LensSimplePinhole, Width: width,
		Height: height, Params: []float64{focal, float64(width) / 2, float64(height) / 2}}}
}

// Map finds cameras and points of photos, and returns them as a COLMAP model, whose points have the mean colours of
// their features, what it lacks, and where it is if GPS tells.
func Map(ctx context.Context, photos []Photo, found []Features, pairs []mapping.Pair,
	progress func(done, of int)) (m *colmap.Model, missing []mapping.Missing, at *Earth, err error) {
	in := input(photos, found)
	in.Pairs = pairs
	model, err := mapping.Map(ctx, in, mapping.Options{Progress: progress})
	if err != nil {
		return nil, nil, nil, err
	}
	at = align(model, placesOf(photos))
	m = &colmap.Model{Cameras: map[uint32]scene.Calibration{}}
	place := make([]int, len(photos)) // in m.Images
	for i, p := range photos {
		if place[i] = -1; !model.Placed[i] {
			continue
		}
		lens := in.Photos[i].Lens
		m.Cameras[uint32(lens+1)] = model.Lenses[lens]
		place[i] = len(m.Images)
		m.Images = append(m.Images, colmap.Image{Id: uint32(i + 1), Camera: uint32(lens + 1), Name: p.Name,
			Quat: geom.QuatFromRotation(model.Poses[i].R), T: model.Poses[i].T})
	}
	m.Seen = make([][]colmap.Seen, len(m.Images))
	for i, p := range model.Points {
		id := uint64(i + 1)
		var sum [3]float64
		for _, s := range p.Track {
			f := &found[s.Photo]
			x := f.Points[s.Keypoint]
			at := place[s.Photo]
			m.Seen[at] = append(m.Seen[at], colmap.Seen{X: float64(x.X), Y: float64(x.Y), Point: id})
			for c := range sum {
				sum[c] += float64(f.Colours[3*int(s.Keypoint)+c])
			}
		}
		point := colmap.Point{ID: id, Error: p.Error}
		point.Pos = p.X
		for c := range sum {
			point.Color[c] = uint8(sum[c]/float64(len(p.Track)) + 0.5)
		}
		m.Points = append(m.Points, point)
	}
	return m, model.Missing, at, nil
}
