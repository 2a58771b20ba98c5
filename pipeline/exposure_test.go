package pipeline

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// partialScene is promiseScene with everything that decides how a photo is compared: masks on two photos of three,
// transparent pixels, an alpha loss, and learnt exposure.
func partialScene(t testing.TB) ([]TrainView, *scene.Splats, float64, recipe.Config) {
	t.Helper()
	views, init, scale, cfg := promiseScene(t)
	views = views[:8] // each is trained on several times
	for i := range views {
		m := &views[i].Image
		for p := range m.Width * m.Height {
			if (p/7+i)%11 == 0 {
				m.Pix[4*p+3] = uint8(37 * p)
			}
		}
		if i%3 == 0 {
			continue
		}
		m.Mask = make([]uint32, photos.MaskWords(m.Width*m.Height))
		for p := range m.Width * m.Height {
			// Discs of another size and place in each photo do not count.
			x, y := float64(p%m.Width-10-3*i%m.Width), float64(p/m.Width-20)
			if math.Hypot(x, y) > float64(4+i%9) {
				m.Mask[p/32] |= 1 << (p % 32)
			}
		}
	}
	cfg.Iterations, cfg.RefineStop, cfg.ResetEvery = 30, 25, 15
	cfg.AlphaLoss, cfg.Exposure, cfg.LRExposure = 0.1, true, 0.02
	return views, init, scale, cfg
}

// partialHash trains partialScene, with room for that many pairs at first unless it is 0, and returns the hash of the
// model and of the exposure table, and the last step that did not fit.
func partialHash(t testing.TB, d *Device, room int, change func(*recipe.Config),
	o TrainerOptions) (hash string, grew int) {
	t.Helper()
	views, init, scale, cfg := partialScene(t)
	if change != nil {
		change(&cfg)
	}
	tr, err := trainWith(d, views, init, scale, cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if room > 0 {
		tr.e.isectCapacity = room
		if err := tr.e.build(); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	s, err := tr.Splats()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	table, err := tr.e.exposures.download()
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	for i := range table {
		h.Write(vk.Bytes(&table[i]))
	}
	return fmt.Sprintf("%s %x", modelHash(s), h.Sum(nil)[:8]), tr.lastGrowth
}

// download returns the whole table. Nothing may be in flight.
func (x *exposures) download() ([]layout.Exposure, error) {
	to, err := vk.Make[layout.Exposure](x.dev, vk.Readback, x.table.N(), "exposures")
	if err != nil {
		return nil, err
	}
	r := vk.NewRecorder(x.dev)
	r.Copy(to.View, x.table.View)
	err = runOnce(x.dev, r, "read exposures")
	return slices.Clone(vk.Host(to)), errors.Join(err, x.dev.Free(to.View))
}

// TestSameBytesWithMasks trains partialScene in every way that must not matter.
func TestSameBytesWithMasks(t *testing.T) {
	d := testDevice(t)
	usual := TrainerOptions{}
	want, _ := partialHash(t, d, 0, nil, usual)
	same := func(name string, o TrainerOptions) {
		t.Helper()
		if got, _ := partialHash(t, d, 0, nil, o); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	same("again", usual)
	same("larger buffers", larger)
	t.Run("bands", func(t *testing.T) {
		inBands(t, 2)
		same("two bands", usual)
		inBands(t, 99)
		same("a band for each row of tiles", usual)
	})
	// Steps take 4,600 to 7,300 pairs: some of the later ones do not fit, and fail with those queued behind them.
	if got, grew := partialHash(t, d, 25*layout.MostBucket, nil, usual); got != want || grew == 0 {
		t.Errorf("little room, too little at step %d: %s, want %s", grew, got, want)
	}
	t.Run("serial", func(t *testing.T) {
		t.Setenv("VKSPLAT_SERIAL", "1")
		same("serial", usual)
	})
	// The hash sees each of them.
	short := func(c *recipe.Config) { c.Iterations, c.RefineEvery = 9, 0 } // one photo twice
	plain, _ := partialHash(t, d, 0, short, usual)
	for name, change := range map[string]func(*recipe.Config){
		"alpha loss":      func(c *recipe.Config) { c.AlphaLoss = 0.2 },
		"exposure":        func(c *recipe.Config) { c.LRExposure *= 2 },
		"its regulariser": func(c *recipe.Config) { c.ExposureReg = 1 },
	} {
		if got, _ := partialHash(t, d, 0, func(c *recipe.Config) { short(c); change(c) }, usual); got == plain {
			t.Errorf("%s changes nothing", name)
		}
	}
}

// TestExposureTable writes the table back and reads it again, and refuses one of another size.
func TestExposureTable(t *testing.T) {
	d := testDevice(t)
	x, err := newExposures(d.dev, 5)
	if err != nil {
		t.Fatal(err)
	}
	defer x.close()
	table, err := x.download()
	if err != nil {
		t.Fatal(err)
	}
	if len(table) != 5 || table[4].Affine != [12]float32{0: 1, 5: 1, 10: 1} || table[4].Bias1 != 0 ||
		table[4].M != [12]float32{} {
		t.Errorf("it starts with %+v", table)
	}
	table[3].Affine[7], table[3].Bias2 = 9, 0.5
	if err := x.upload(table); err != nil {
		t.Fatal(err)
	}
	again, err := x.download()
	if err != nil || fmt.Sprint(again) != fmt.Sprint(table) {
		t.Errorf("%v, %v", again, err)
	}
	if err := x.upload(table[:4]); err == nil {
		t.Error("a table of four maps for five photos: no error")
	}
}

// TestBadMask refuses a mask of the wrong size.
func TestBadMask(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	views[1].Image.Mask = make([]uint32, 3)
	tr, err := trainOn(testDevice(t), views, init, scale, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "mask of 3 words") {
		t.Error(err)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}

// exposureScene renders a small model at cameras of the promise scene. The photos have a gain and a tint each; what is
// trained starts from the model in grey.
func exposureScene(t *testing.T, d *Device) (train, held []TrainView, init *scene.Splats) {
	t.Helper()
	all, full, _, _ := promiseScene(t)
	var cams []scene.Camera
	for i := range all {
		c := all[i].Camera
		c.Width, c.Height, c.Fx, c.Fy, c.Cx, c.Cy = c.Width/2, c.Height/2, c.Fx/2, c.Fy/2, c.Cx/2, c.Cy/2
		cams = append(cams, c)
	}
	truth := fewLarge(full)
	r, err := NewRenderer(d, truth, cams, RenderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i, c := range cams[:15] {
		pic, err := r.RenderInto(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		gain := [3]float64{0.5 + 0.05*float64(i*7%11), 0.5 + 0.05*float64(i*4%11), 0.5 + 0.05*float64(i*9%11)}
		m := scene.Image{Width: c.Width, Height: c.Height}
		for p := 0; p < len(pic); p += 3 {
			for ch := range 3 {
				m.Pix = append(m.Pix, uint8(255*gain[ch]*min(max(float64(pic[p+ch]), 0), 1)+0.5))
			}
			m.Pix = append(m.Pix, 255)
		}
		if i%3 == 2 {
			held = append(held, TrainView{c, m})
		} else {
			train = append(train, TrainView{c, m})
		}
	}
	clear(truth.SH)
	return train, held, truth
}

// fewLarge takes every fifth splat, large, nearly opaque and of one colour from all sides.
func fewLarge(s *scene.Splats) *scene.Splats {
	width, n := len(s.SH)/s.N, (s.N+4)/5
	out := scene.NewSplats(n, 0)
	for i := range n {
		copy(out.Means[3*i:3*i+3], s.Means[15*i:])
		copy(out.Quats[4*i:4*i+4], s.Quats[20*i:])
		copy(out.SH[3*i:3*i+3], s.SH[5*i*width:])
		for k := range 3 {
			out.LogScales[3*i+k] = s.LogScales[15*i+k] + 0.6
		}
		out.LogitOpacities[i] = 2
	}
	return out
}

// rightColumns cuts the right half out of a picture.
func rightColumns(pic []float32, width int) (out []float32) {
	for i := 0; i < len(pic); i += 3 * width {
		out = append(out, pic[i+3*(width/2):i+3*width]...)
	}
	return out
}

// halfPSNR is the mean over held of the PSNR on the right half, with a colour map fitted on the left.
func halfPSNR(t *testing.T, tr *Trainer, held []TrainView) (psnr float64) {
	t.Helper()
	for _, v := range held {
		pic, err := tr.RenderInto(nil, v.Camera)
		if err != nil {
			t.Fatal(err)
		}
		m, photo := v.Image, make([]float32, len(pic))
		for i := range photo {
			photo[i] = float32(m.Pix[i/3*4+i%3]) / 255
		}
		pic = metric.ApplyExposure(metric.FitExposure(pic, photo, m.Width, m.Height, nil), pic)
		x, err := metric.PSNR(rightColumns(pic, m.Width), rightColumns(photo, m.Width), nil)
		if err != nil {
			t.Fatal(err)
		}
		psnr += x / float64(len(held))
	}
	return psnr
}

// TestExposureHelps trains colours on photos of changing exposure with learnt colour maps and without: the maps take
// the changes up, and photos that were held out are met better.
func TestExposureHelps(t *testing.T) {
	d := testDevice(t)
	train, held, init := exposureScene(t, d)
	cfg := recipe.Default()
	cfg.Iterations, cfg.RefineEvery, cfg.SHDegree = 80, 0, 0
	for _, rate := range cfg.SplatRates() {
		*rate = 0
	}
	cfg.LRSH0, cfg.LRExposure = 0.1, 0.06 // a short run: each photo is seen eight times
	psnr := func(exposure bool) (float64, float32) {
		cfg.Exposure = exposure
		tr, err := trainOn(d, train, init, 1, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		var mse float32
		err = tr.Run(context.Background(), func(p Progress) {
			if p.Step > cfg.Iterations-len(train) {
				mse += p.MSE / float32(len(train))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if exposure != (tr.e.exposures != nil) {
			t.Errorf("exposure is %v, the trainer has colour maps: %v", exposure, tr.e.exposures != nil)
		} else if exposure {
			maps, err := tr.e.exposures.download()
			if err != nil || len(maps) != len(train) || maps[0].Affine == [12]float32{0: 1, 5: 1, 10: 1} {
				t.Errorf("colour maps %v, %v", maps, err)
			}
		}
		return halfPSNR(t, tr, held), mse
	}
	without, mseWithout := psnr(false)
	with, mseWith := psnr(true)
	t.Logf("held-out PSNR %.2f dB with exposure, %.2f dB without; training error %.5f and %.5f", with, without, mseWith,
		mseWithout)
	if !(with > without+0.6) || !(mseWith < mseWithout/1.5) {
		t.Error("exposure does not help")
	}
}
