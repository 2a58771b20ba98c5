package reconstruct

import (
	"context"
	"runtime"

	"vksplat/pipeline"
	"vksplat/pipeline/features"
	"vksplat/scene"
	"vksplat/scene/mapping"
	"vksplat/scene/photo"
)

// Photo is a photo whose camera is searched for.
type Photo struct {
	Name     string // with slashes
	Path     string
	Mask     string // file that is black where features are to be ignored; "" for none
	Lens     string // photos of one text share a calibration
	Sequence string // photos of one text were taken one after the other; "": this is in no sequence
	// Of a model that is extended: the calibration and the place that are known, and stay; nil: they are found.
	Calibration *scene.Calibration
	Place       *mapping.Place
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

// atOnce is how many photos are gone through at a time: as many as there are cores, or fit into some bytes.
func atOnce(photos []Photo, memory int64) int {
	pixels := int64(1)
	for i := range photos {
		if w, h, err := photo.Size(photos[i].Path); err == nil {
			pixels = max(pixels, int64(w)*int64(h))
		}
	}
	return int(max(1, min(int64(runtime.GOMAXPROCS(0)), memory/(pixelBytes*pixels))))
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
				f, err := findIn(ctx, e, &photos[i])
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

// decode reads a photo as it is stored.
func decode(p *Photo) (scene.Image, error) {
	w, h, err := photo.Size(p.Path)
	if err != nil {
		return scene.Image{}, err
	}
	return photo.Decode(scene.Camera{Name: p.Name, Path: p.Path, Mask: p.Mask, Width: w, Height: h})
}

// findIn finds the features of a photo where its mask says that pixels count.
func findIn(ctx context.Context, e *features.Extractor, p *Photo) (Features, error) {
	m, err := decode(p)
	if err != nil {
		return Features{}, err
	}
	defer photo.Recycle(m)
	grey := make([]byte, m.Width*m.Height)
	for i := range grey { // luma of Rec. 601
		grey[i] = byte((299*int(m.Pix[4*i]) + 587*int(m.Pix[4*i+1]) + 114*int(m.Pix[4*i+2]) + 500) / 1000)
	}
	all, err := e.Extract(ctx, m.Width, m.Height, grey)
	f := Features{Name: p.Name, Width: m.Width, Height: m.Height}
	for i, p := range all.Points {
		at := min(max(int(p.Y), 0), m.Height-1)*m.Width + min(max(int(p.X), 0), m.Width-1)
		if m.Mask != nil && !photo.Counts(m.Mask, at) {
			continue
		}
		f.Points = append(f.Points, p)
		const n = features.DescriptorBytes
		f.Descriptors = append(f.Descriptors, all.Descriptors[n*i:n*(i+1)]...)
		f.Colours = append(f.Colours, m.Pix[4*at:4*at+3]...)
	}
	return f, err
}
