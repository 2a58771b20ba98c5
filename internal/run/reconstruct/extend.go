package reconstruct

import (
	"context"
	"maps"
	"slices"

	"vksplat/internal/geom"
	"vksplat/scene/colmap"
	"vksplat/scene/mapping"
)

// extension is a model to which photos are added.
type extension struct {
	*colmap.Model
	photos []Photo
	found  []Features
	image  []int                                  // by photo, in Images; -1: the model does not have it
	shown  []map[[2]float64]uint64                // by image that was there: the point that is shown at a place
	seen   map[struct{ image, point uint64 }]bool // by new photos
}

// Extend places the photos without a place among those that have one, whose images are in the model, and adds them and
// what they show to it. Cameras, poses and points that are there stay as they are; points are seen by more photos. The
// photos that still lack a camera are in missing.
func Extend(ctx context.Context, m *colmap.Model, photos []Photo, found []Features, pairs []mapping.Pair,
	progress func(done, of int), growing Growing) (missing []mapping.Missing, err error) {
	in := input(photos, found)
	in.Pairs = pairs
	model, err := mapping.Map(ctx, in, mapping.Options{Progress: progress, Growing: growing.of(in, found)})
	if err != nil {
		return nil, err
	}
	e := &extension{Model: m, photos: photos, found: found, seen: map[struct{ image, point uint64 }]bool{}}
	e.index()
	e.addImages(in, model)
	e.addPoints(model)
	return model.Missing, nil
}

// index finds the images of photos that are there, and what they show where.
func (e *extension) index() {
	byName := map[string]int{}
	for k, img := range e.Images {
		byName[img.Name] = k
	}
	e.shown = make([]map[[2]float64]uint64, len(e.Images))
	for i := range e.photos {
		k, known := byName[e.photos[i].Name]
		if !known || e.photos[i].Place == nil {
			e.image = append(e.image, -1)
			continue
		}
		e.image = append(e.image, k)
		e.shown[k] = make(map[[2]float64]uint64, len(e.Seen[k]))
		for _, s := range e.Seen[k] {
			e.shown[k][[2]float64{s.X, s.Y}] = s.Point
		}
	}
}

// addImages adds the photos that were placed, and their cameras unless these are there.
func (e *extension) addImages(in *mapping.Input, model *mapping.Model) {
	cameras := map[int]uint32{} // by lens
	for i, k := range e.image {
		if k >= 0 {
			cameras[in.Photos[i].Lens] = e.Images[k].Camera
		}
	}
	last := uint32(0)
	for id := range maps.Keys(e.Cameras) {
		last = max(last, id)
	}
	image := slices.MaxFunc(e.Images, func(a, b colmap.Image) int { return int(int64(a.Id) - int64(b.Id)) }).Id
	for i, p := range e.photos {
		if !model.Placed[i] || p.Place != nil {
			continue
		}
		lens := in.Photos[i].Lens
		if _, known := cameras[lens]; !known {
			last++
			cameras[lens], e.Cameras[last] = last, model.Lenses[lens]
		}
		image++
		e.image[i] = len(e.Images)
		e.Images = append(e.Images, colmap.Image{Id: image, Camera: cameras[lens], Name: p.Name,
			Quat: geom.QuatFromRotation(model.Poses[i].R), T: model.Poses[i].T})
		e.Seen = append(e.Seen, nil)
	}
}

// addPoints adds the points that new photos show. A track with a keypoint that shows a point that is there is of that
// point.
func (e *extension) addPoints(model *mapping.Model) {
	last := uint64(0)
	for _, p := range e.Points {
		last = max(last, p.ID)
	}
	there := make(map[uint64]bool, len(e.Points))
	for _, p := range e.Points {
		there[p.ID] = true
	}
	for i := range model.Points {
		p := &model.Points[i]
		isNew := func(s mapping.Sight) bool { return e.photos[s.Photo].Place == nil }
		if !slices.ContainsFunc(p.Track, isNew) {
			continue
		}
		id, known := e.pointOf(p, there)
		if !known {
			last++
			id = last
			e.Points = append(e.Points, pointOf(p, e.found, id))
		}
		for _, s := range p.Track {
			at := e.image[s.Photo]
			key := struct{ image, point uint64 }{uint64(at), id}
			if known && (!isNew(s) || e.seen[key]) {
				continue
			}
			e.seen[key] = true
			e.Seen[at] = append(e.Seen[at], seen(e.found, s, id))
		}
	}
}

// pointOf returns the point that was there of a track, by the first of its keypoints that shows one.
func (e *extension) pointOf(p *mapping.Point, there map[uint64]bool) (id uint64, known bool) {
	for _, s := range p.Track {
		if e.photos[s.Photo].Place == nil {
			continue
		}
		x := e.found[s.Photo].Points[s.Keypoint]
		id, known := e.shown[e.image[s.Photo]][[2]float64{float64(x.X), float64(x.Y)}]
		if known && there[id] {
			return id, true
		}
	}
	return 0, false
}
