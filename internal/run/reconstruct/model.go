package reconstruct

import (
	"context"
	"math"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/mapping"
	"vksplat/scene/photo"
)

// lensOf is the calibration that the search for a photo's camera begins with: a given one, the focal length that EXIF
// tells, or a guess, by which a fisheye shows half of all directions; of a panorama there is no more to be found.
func lensOf(p *Photo, width, height int) mapping.Lens {
	if p.Calibration != nil {
		return mapping.Lens{Calibration: *p.Calibration, FocalKnown: true, Fixed: true}
	}
	if p.panorama() {
		return mapping.Lens{FocalKnown: true, Calibration: scene.Calibration{Model: scene.LensEquirectangular,
			Width: width, Height: height, Params: []float64{float64(width), float64(height)}}}
	}
	model, chosen := scene.LensModelByName(p.Model)
	if !chosen {
		model = scene.LensSimplePinhole
	}
	info, _ := model.Info()
	w, h := float64(width), float64(height)
	focal, known := photo.FocalLength(p.Path)
	switch {
	case known:
		focal *= max(w, h)
	case info.Fish:
		focal = math.Hypot(w, h) / math.Pi
	default:
		focal = guessedFocal * max(w, h)
	}
	params := make([]float64, info.Params)
	for i := range info.Focals {
		params[i] = focal
	}
	params[info.Focals], params[info.Focals+1] = w/2, h/2
	return mapping.Lens{FocalKnown: known, Chosen: chosen,
		Calibration: scene.Calibration{Model: model, Width: width, Height: height, Params: params}}
}

// Sketch is a model that grows.
type Sketch struct {
	Cameras []scene.Camera // without distortion
	Points  []colmap.Point // a part of them
}

// Growing is mapping.Options.Growing with copies.
type Growing func(look func() *Sketch, last bool)

func (g Growing) of(in *mapping.Input, found []Features) func(look func() *mapping.Model, last bool) {
	if g == nil {
		return nil
	}
	return func(look func() *mapping.Model, last bool) {
		g(func() *Sketch { return sketchOf(in, found, look()) }, last)
	}
}

// sketchOf copies what is shown of a model.
func sketchOf(in *mapping.Input, found []Features, m *mapping.Model) *Sketch {
	s := &Sketch{}
	for i, p := range in.Photos {
		if !m.Placed[i] {
			continue
		}
		k := &m.Lenses[p.Lens]
		info, _ := k.Model.Info()
		s.Cameras = append(s.Cameras, scene.Camera{Name: p.Name, Width: k.Width, Height: k.Height, Fx: k.Params[0],
			Fy: k.Params[max(info.Focals, 1)-1], R: m.Poses[i].R, T: m.Poses[i].T})
	}
	for i := range m.Points {
		s.Points = append(s.Points, pointOf(&m.Points[i], found, uint64(i+1)))
	}
	return s
}

// Map finds cameras and points of photos, and returns them as a COLMAP model, whose points have the mean colours of
// their features, as it was mapped, and where it is if GPS tells.
func Map(ctx context.Context, photos []Photo, found []Features, pairs []mapping.Pair,
	progress func(done, of int), growing Growing) (m *colmap.Model, model *mapping.Model, at *Earth, err error) {
	in := input(photos, found)
	in.Pairs = pairs
	model, err = mapping.Map(ctx, in, mapping.Options{Progress: progress, Growing: growing.of(in, found)})
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
		for _, s := range p.Track {
			at := place[s.Photo]
			m.Seen[at] = append(m.Seen[at], seen(found, s, id))
		}
		m.Points = append(m.Points, pointOf(&p, found, id))
	}
	return m, model, at, nil
}

// seen is a keypoint that shows a point.
func seen(found []Features, s mapping.Sight, id uint64) colmap.Seen {
	x := found[s.Photo].Points[s.Keypoint]
	return colmap.Seen{X: float64(x.X), Y: float64(x.Y), Point: id}
}

// pointOf is a point with the mean colour of its features.
func pointOf(p *mapping.Point, found []Features, id uint64) colmap.Point {
	var sum [3]float64
	for _, s := range p.Track {
		for c := range sum {
			sum[c] += float64(found[s.Photo].Colours[3*int(s.Keypoint)+c])
		}
	}
	point := colmap.Point{ID: id, Error: p.Error}
	point.Pos = p.X
	for c := range sum {
		point.Color[c] = uint8(sum[c]/float64(len(p.Track)) + 0.5)
	}
	return point
}
