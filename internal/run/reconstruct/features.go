package reconstruct

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"

	"vksplat/internal/geom"
	"vksplat/pipeline"
	"vksplat/pipeline/features"
	"vksplat/scene"
	"vksplat/scene/mapping"
	"vksplat/scene/photo"
)

// Photo is a photo whose camera is searched for.
type Photo struct {
	Name     string // with slashes
	Path     string // "": there is no picture, and there are no features
	Mask     string // file that is black where features are to be ignored; "" for none
	Lens     string // photos of one text share a calibration
	Model    string // COLMAP's name of the lens model to find, which scene/adjust must know; another text: it is chosen
	Sequence string // photos of one text were taken one after the other; "": this is in no sequence
	Moment   string // photos of one text were taken at once, by cameras fixed to each other; "": none was with this
	// Of a model that is extended: the calibration and the place that are known, and stay; nil: they are found.
	Calibration *scene.Calibration
	Place       *mapping.Place

	MaskInverted bool // the mask is white where features are to be ignored
}

func (p *Photo) panorama() bool {
	m, _ := scene.LensModelByName(p.Model)
	return m == scene.LensEquirectangular
}

// Features are the keypoints of a photo.
type Features struct {
	features.Set
	Name          string // of the photo
	Colours       []byte // [Points][3], of the pixels that they are at
	Width, Height int    // of the photo
	// Load reads the descriptors where the Set has none; it is called by several goroutines.
	Load func() ([]byte, error)
}

// AllDescriptors returns the descriptors, wherever they are.
func (f *Features) AllDescriptors() ([]byte, error) {
	if f.Descriptors != nil || f.Load == nil {
		return f.Descriptors, nil
	}
	return f.Load()
}

// pixelBytes are those of a pixel while features are searched: RGBA and grey.
const pixelBytes = 5

// PictureBytes are those that the largest photo takes while features are searched.
func PictureBytes(photos []Photo) int64 {
	pixels := int64(1)
	for i := range photos {
		if w, h, err := photo.Size(photos[i].Path); err == nil {
			pixels = max(pixels, int64(w)*int64(h))
		}
	}
	return pixelBytes * pixels
}

// atOnce is how many photos are gone through at a time: as many as there are cores, or fit into some bytes.
func atOnce(photos []Photo, memory int64) int {
	return int(max(1, min(int64(runtime.GOMAXPROCS(0)), memory/PictureBytes(photos))))
}

// Find finds the features of several photos at a time, as their pictures fit into some bytes, and hands them on in
// order. The same photos give the same bytes on one device and driver.
func Find(ctx context.Context, d *pipeline.Device, photos []Photo, o features.Options, memory int64,
	emit func(f *Features) error) error {
	e, err := pipeline.NewFeatures(d, o)
	if err != nil {
		return err
	}
	defer e.Close() // what it found is with the host
	type result struct {
		Features
		err error
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ahead := make(chan chan result, atOnce(photos, memory)-1) // beside the one that is waited for
	go func() {
		defer close(ahead)
		for i := range photos {
			one := make(chan result, 1)
			select {
			case ahead <- one:
			case <-ctx.Done():
				return
			}
			go func() {
				f, err := findIn(ctx, e, &photos[i], o.Max)
				one <- result{f, err}
			}()
		}
	}()
	for one := range ahead {
		f := <-one
		if f.err == nil {
			f.err = emit(&f.Features)
		}
		if f.err != nil {
			return f.err
		}
	}
	return ctx.Err()
}

// pictures are what features are found in: the photo as it is stored or, of a panorama, the faces of a cube. These
// reach beyond the cube's edges by faceMargin, so that features there are described as all others are.
func (p *Photo) pictures(width, height int) ([]scene.Camera, error) {
	c := scene.Camera{Name: p.Name, Path: p.Path, Mask: p.Mask, MaskInverted: p.MaskInverted,
		Width: width, Height: height}
	if !p.panorama() {
		return []scene.Camera{c}, nil
	}
	faces, err := lensOf(p, width, height).Views(c, width, height, 1)
	for i := range faces {
		f := &faces[i]
		margin := int(math.Ceil(faceMargin * float64(f.Width)))
		f.Width, f.Height = f.Width+2*margin, f.Height+2*margin
		f.Cx, f.Cy = f.Cx+float64(margin), f.Cy+float64(margin)
	}
	return faces, err
}

// faceMargin is a share of a face's side.
const faceMargin = 0.1

// findIn finds the features of a photo where its mask says that pixels count.
func findIn(ctx context.Context, e *features.Extractor, p *Photo, most int) (f Features, err error) {
	f.Name = p.Name
	if p.Path == "" {
		return f, nil
	}
	if f.Width, f.Height, err = photo.Size(p.Path); err != nil {
		return f, err
	}
	cams, err := p.pictures(f.Width, f.Height)
	if err != nil {
		return f, err
	}
	pictures, errs := photo.DecodeViews(cams)
	for i, m := range pictures {
		if err == nil && errs[i] == nil {
			err = f.find(ctx, e, &cams[i], m)
			photo.Recycle(m)
		} else if !errors.Is(errs[i], photo.ErrMasked) { // of a photo or face that is all masked
			err = errors.Join(err, errs[i])
		}
	}
	if p.panorama() {
		f.largest(most)
	}
	return f, err
}

// find adds the features of a picture.
func (f *Features) find(ctx context.Context, e *features.Extractor, c *scene.Camera, m scene.Image) error {
	grey := make([]byte, m.Width*m.Height)
	for i := range grey { // luma of Rec. 601
		grey[i] = byte((299*int(m.Pix[4*i]) + 587*int(m.Pix[4*i+1]) + 114*int(m.Pix[4*i+2]) + 500) / 1000)
	}
	all, err := e.Extract(ctx, m.Width, m.Height, grey)
	if err != nil {
		return err
	}
	var o *scene.Optics
	if c.Lens != nil {
		if o, err = c.Lens.Calibration.Optics(f.Width, f.Height); err != nil {
			return err
		}
	}
	for i, p := range all.Points {
		at := min(max(int(p.Y), 0), m.Height-1)*m.Width + min(max(int(p.X), 0), m.Width-1)
		if m.Mask != nil && !photo.Counts(m.Mask, at) {
			continue
		}
		if o != nil {
			u, v := (float64(p.X)-c.Cx)/c.Fx, (float64(p.Y)-c.Cy)/c.Fy
			if max(math.Abs(u), math.Abs(v)) > 1 { // another face has it
				continue
			}
			x, y, _ := o.Project(geom.Rotate(c.Lens.R, [3]float64{u, v, 1}))
			p.X, p.Y = float32(x), float32(y)
		}
		f.Points = append(f.Points, p)
		const n = features.DescriptorBytes
		f.Descriptors = append(f.Descriptors, all.Descriptors[n*i:n*(i+1)]...)
		f.Colours = append(f.Colours, m.Pix[4*at:4*at+3]...)
	}
	return nil
}

// largest keeps the largest features, in that order.
func (f *Features) largest(most int) {
	order := make([]int, len(f.Points))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.Points[b].Scale, f.Points[a].Scale) })
	all := *f
	f.Points, f.Descriptors, f.Colours = nil, nil, nil
	for _, i := range order[:min(most, len(order))] {
		const n = features.DescriptorBytes
		f.Points = append(f.Points, all.Points[i])
		f.Descriptors = append(f.Descriptors, all.Descriptors[n*i:n*(i+1)]...)
		f.Colours = append(f.Colours, all.Colours[3*i:3*i+3]...)
	}
}
