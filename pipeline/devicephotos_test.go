package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/philox"
	"vksplat/pipeline/photos"
	"vksplat/scene"
)

// TestPackedPhotos trains on photos that lie packed on the device and on the same in four bytes a pixel, at full size
// and smaller: the same model. One that is transparent though its name says otherwise is not kept on the device, and
// trained on all the same.
func TestPackedPhotos(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	views = views[:10]
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
			tr := must.Get(NewTrainer(d, named, photos, init, scale, cfg, TrainerOptions{PhotoBytes: bytes}))(t)
			defer tr.Close()
			must.Do(t, tr.Run(context.Background(), nil))
			all, _ = tr.shards.first.photos.layout.Totals(named)
			s := must.Get(tr.Splats())(t)
			return modelHash(s), tr.shards.first.photos.complete()
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
				t.Errorf("transparent %v, 1/%d of %d bytes on the device (%d in four bytes a pixel): %s, want %s",
					transparent, part, all, plain, got, want)
			}
			if complete != (!transparent && part == 1) {
				t.Errorf("transparent %v, 1/%d: all are on the device: %v", transparent, part, complete)
			}
		}
	}
}

// expectedPhotos are photos that compare what is asked for with what was announced.
type expectedPhotos struct {
	photos.Images
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

// TestOutsizePhotosAreExpected trains on photos of which one is transparent though its name says otherwise: it is asked
// for anew each time, and announced.
func TestOutsizePhotosAreExpected(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	views = views[:10]
	cams, images := splitViews(views)
	n := len(cams)
	for i := range cams {
		cams[i].Name = strconv.Itoa(i) + ".jpg"
	}
	images[1].Pix = slices.Clone(images[1].Pix)
	images[1].Pix[3] = 100
	cfg.Iterations, cfg.RefineEvery = 4*n, 0
	all, _ := photos.LayoutOf(cams).Totals(cams)
	for _, part := range []int64{1, 2} {
		photos := &expectedPhotos{Images: images}
		tr := must.Get(NewTrainer(testDevice(t), cams, photos, init, scale, cfg,
			TrainerOptions{PhotoBytes: all / part, hooks: testHooks{capacities: 16}}))(t)
		endHash(t, tr)
		if photos.unexpected != 0 || photos.asked < n+3 || part == 1 && photos.asked != n+3 {
			t.Errorf("1/%d of the photos on the device: %d asked for in %d steps, %d of them not announced", part,
				photos.asked, cfg.Iterations, photos.unexpected)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestReplacedPhotoHasItsSlot trains with every photo on the device, where a photo that cannot be decoded is smaller
// than the one that takes its place.
func TestReplacedPhotoHasItsSlot(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	views = views[:10]
	cfg.Iterations, cfg.RefineEvery = 2*len(views)+2, 0
	cams, photos := splitViews(views)
	bad := philox.ViewOrder(cfg.Seed, 0, len(cams))[1]
	cams[bad] = cams[bad].Rescaled(cams[bad].Width/2, cams[bad].Height/2)
	tr := must.Get(NewTrainer(testDevice(t), cams, withoutView{photos, bad}, init, scale, cfg, TrainerOptions{}))(t)
	defer tr.Close()
	must.Do(t, tr.Run(context.Background(), nil))
	if p := tr.shards.first.photos; !p.all || !p.complete() {
		t.Errorf("%d of %d photos are kept, %d have no pixels", p.filled, len(p.slots), p.order.nBad)
	}
}

// withoutView are photos of which one cannot be decoded.
type withoutView struct {
	photos.Source
	bad int
}

func (p withoutView) Photo(ctx context.Context, view int) (scene.Image, error) {
	if view == p.bad {
		return scene.Image{}, fmt.Errorf("no pixels: %w", fault.ErrData)
	}
	return p.Source.Photo(ctx, view)
}
