package reconstruct

import (
	"context"
	"runtime"

	"vksplat/pipeline"
	"vksplat/pipeline/features"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// Photo is a photo whose camera is searched for.
type Photo struct {
	Name     string // with slashes
	Path     string
	Mask     string // file that is black where features are to be ignored; "" for none
	Lens     string // photos of one text share a calibration
	Model    string // COLMAP's name of the lens model to find, which scene/adjust must know; another text: it is chosen
	Sequence string // photos of one text were taken one after the other; "": this is in no sequence
}

// Features are the keypoints of a photo.
type Features struct {
	features.Set
	Colours       []byte // [Points][3], of the pixels that they are at
	Width, Height int    // of the photo
}

// Find finds the features of several photos at a time. done is called after each. The same photos give the same bytes
// on one device and driver.
func Find(ctx context.Context, d *pipeline.Device, photos []Photo, o features.Options, done func(n int)) (
	[]Features, error) {
	e, err := pipeline.NewFeatures(d, o)
	if err != nil {
		return nil, err
	}
	defer e.Close() // what it found is with the host
	type result struct {
		Features
		err error
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ahead := make(chan chan result, runtime.GOMAXPROCS(0)) // bounds the pictures in memory
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
	found := make([]Features, 0, len(photos))
	for one := range ahead {
		f := <-one
		if f.err != nil {
			return nil, f.err
		}
		found = append(found, f.Features)
		done(len(found))
	}
	return found, ctx.Err()
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
	f := Features{Width: m.Width, Height: m.Height}
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
