package pipeline

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"vksplat/scene"
)

// TestPackColors packs pixels of every number modulo four.
func TestPackColors(t *testing.T) {
	for n := range 10 {
		var pix, want []byte
		for i := range n {
			rgb := []byte{byte(40*i + 1), byte(40*i + 2), byte(255 - i)}
			pix, want = append(append(pix, rgb...), 255), append(want, rgb...)
		}
		got := make([]byte, 4*colorWords(n, true))
		if !packColors(got, pix) || !slices.Equal(got[:3*n], want) {
			t.Errorf("%d pixels: %v, want %v", n, got, want)
		}
		for i := range n {
			pix[4*i+3] = 254
			if packColors(got, pix) {
				t.Errorf("%d pixels are opaque, of which number %d is not", n, i)
			}
			pix[4*i+3] = 255
		}
	}
}

// TestPackedPhotos trains on photos that lie packed on the device and on the same in four bytes a pixel, at full size and smaller: the same model. One that is
// transparent though its name says otherwise is not kept on the device, and trained on all the same.
func TestPackedPhotos(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cfg.Iterations, cfg.RefineEvery = len(views)+2, 0
	cfg.NumDownscales, cfg.ResolutionSchedule = 2, len(views)/3
	d := testDevice(t)
	for _, transparent := range []bool{false, true} {
		cams, photos := splitViews(views)
		if transparent {
			photos[1].Pix = slices.Clone(photos[1].Pix)
			photos[1].Pix[3] = 100
		}
		all := int64(0)
		const mixed = ".png and "
		run := func(ext string, bytes int64) (hash string, complete bool) {
			named := slices.Clone(cams)
			for i := range named {
				named[i].Name = strconv.Itoa(i) + ext
				if ext == mixed && i%2 == 0 {
					named[i].Name += ".jpg"
				}
			}
			tr, err := NewTrainer(d, named, photos, init, scale, cfg, TrainerOptions{PhotoBytes: bytes})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			if err := tr.Run(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			all, _ = tr.photos.layout.totals(named)
			s, err := tr.Splats()
			if err != nil {
				t.Fatal(err)
			}
			return modelHash(s), tr.photos.complete()
		}
		want, complete := run(".png", 0)
		plain := all
		if !complete {
			t.Fatal("not all photos are on the device: the test proves too little")
		}
		if got, _ := run(mixed, 0); got != want || all >= plain {
			t.Errorf("every other one a JPEG, %d of %d bytes: %s, want %s", all, plain, got, want)
		}
		for _, part := range []int64{1, 3} {
			got, complete := run(".JPG", all/part)
			if got != want || all >= plain*4/5 {
				t.Errorf("transparent %v, 1/%d of %d bytes on the device (%d in four bytes a pixel): %s, want %s", transparent, part, all, plain, got, want)
			}
			if complete != (!transparent && part == 1) {
				t.Errorf("transparent %v, 1/%d: all are on the device: %v", transparent, part, complete)
			}
		}
	}
}

// TestPhotoLayout packs photos where files are JPEGs, whatever they are called, and leaves room for masks where there may be any.
func TestPhotoLayout(t *testing.T) {
	for _, c := range []struct {
		cams []scene.Camera
		want photoLayout
	}{
		{[]scene.Camera{{Name: "a.jpg"}, {Name: "b/c.JPEG"}}, photoLayout{packed: true}},
		{[]scene.Camera{{Name: "a.jpg"}, {Name: "b.png"}}, photoLayout{packed: true}},
		{[]scene.Camera{{Name: "a.png"}, {Name: "b"}}, photoLayout{}},
		{[]scene.Camera{{Name: "pano.jpg/front.png", Path: "/x/pano.jpg", Lens: &scene.Lens{}}}, photoLayout{packed: true, masked: true}},
		{[]scene.Camera{{Name: "a.jpg", Mask: "a.png"}}, photoLayout{packed: true, masked: true}},
	} {
		if got := layoutOf(c.cams); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.cams[0].Name, got, c.want)
		}
	}
	for name, want := range map[string]int64{"a.jpg": 4 * (25 + 2), "a.png": 4 * (33 + 2)} {
		if n := (photoLayout{packed: true, masked: true}).bytes(&scene.Camera{Name: name, Width: 11, Height: 3}); n != want {
			t.Errorf("%s: %d bytes for 33 pixels and their mask, want %d", name, n, want)
		}
	}
}

// expectedPhotos are photos that compare what is asked for with what was announced.
type expectedPhotos struct {
	Images
	queue      []int
	asked      int
	unexpected int
}

func (p *expectedPhotos) Expect(views []int) { p.queue = append(p.queue, views...) }
func (p *expectedPhotos) Forget()            { p.queue = nil }

func (p *expectedPhotos) Photo(ctx context.Context, view int) (scene.Image, error) {
	p.asked++
	if len(p.queue) > 0 && p.queue[0] == view {
		p.queue = p.queue[1:]
	} else {
		p.unexpected++
	}
	return p.Images.Photo(ctx, view)
}

// TestOutsizePhotosAreExpected trains on photos of which one is transparent though its name says otherwise: it is asked for anew each time, and announced.
func TestOutsizePhotosAreExpected(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cams, images := splitViews(views)
	n := len(cams)
	for i := range cams {
		cams[i].Name = strconv.Itoa(i) + ".jpg"
	}
	images[1].Pix = slices.Clone(images[1].Pix)
	images[1].Pix[3] = 100
	cfg.Iterations, cfg.RefineEvery, cfg.startCapacities = 4*n, 0, 16
	all, _ := layoutOf(cams).totals(cams)
	for _, part := range []int64{1, 2} {
		photos := &expectedPhotos{Images: images}
		tr, err := NewTrainer(testDevice(t), cams, photos, init, scale, cfg, TrainerOptions{PhotoBytes: all / part})
		if err != nil {
			t.Fatal(err)
		}
		train(t, tr)
		if photos.unexpected != 0 || photos.asked < n+3 || part == 1 && photos.asked != n+3 {
			t.Errorf("1/%d of the photos on the device: %d asked for in %d steps, %d of them not announced", part, photos.asked, cfg.Iterations, photos.unexpected)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
}
