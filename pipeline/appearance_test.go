package pipeline

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// partialScene is promiseScene with everything that decides how a photo is compared: masks on two photos of three,
// transparent pixels, an alpha loss, learnt appearance, and outliers.
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
	cfg.AlphaLoss, cfg.AppearanceStart = 0.1, 3
	cfg.Exposure, cfg.WhiteBalance, cfg.Vignetting = true, true, true
	cfg.Robust, cfg.RobustFactor = true, 0.5
	return views, init, scale, cfg
}

// partialHash trains partialScene, with room for that many pairs at first unless it is 0, and returns the hash of the
// model and of the table of appearances, and the last step that did not fit.
func partialHash(t testing.TB, d *Device, room int, change func(*recipe.Config),
	o TrainerOptions) (hash string, grew int) {
	t.Helper()
	tr := begun(t, d, partialScene, change, o)
	defer tr.Close()
	if room > 0 {
		tr.shards.first.e.setup.isectCapacity = room
		must.Do(t, tr.shards.first.e.programs.build())
	}
	hash = endHash(t, tr)
	table := must.Get(tr.shards.first.e.setup.appearances.download())(t)
	return hash + " " + rowsHash(table), tr.pressure.lastGrowth
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
	if filetest.Long() { // apart
		same("again", usual)
		same("larger buffers", larger)
	}
	t.Run("bands", func(t *testing.T) {
		inBands(t, 2)
		same("larger buffers and two bands", larger)
		inBands(t, 99)
		same("a band for each row of tiles", usual)
	})
	// Steps take up to 4,968 pairs, in the short form 1,466: some of the later ones do not fit, and fail with those
	// queued behind them.
	room := 5 * layout.MostBucket
	if filetest.Long() {
		room = 18 * layout.MostBucket
	}
	if got, grew := partialHash(t, d, room, nil, usual); got != want || grew == 0 {
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
		"appearance":      func(c *recipe.Config) { c.LRAppearance /= 100 },
		"its regulariser": func(c *recipe.Config) { c.VignettingReg = 1 },
		"exposure":        func(c *recipe.Config) { c.Exposure = false },
		"white balance":   func(c *recipe.Config) { c.WhiteBalance = false },
		"vignetting":      func(c *recipe.Config) { c.Vignetting = false },
		"outliers":        func(c *recipe.Config) { c.Robust = false },
		"their size":      func(c *recipe.Config) { c.RobustFactor = 3 },
	} {
		if got, _ := partialHash(t, d, 0, func(c *recipe.Config) { short(c); change(c) }, usual); got == plain {
			t.Errorf("%s changes nothing", name)
		}
	}
}

// TestAppearanceTable writes the table back and reads it again, and refuses one of another size.
func TestAppearanceTable(t *testing.T) {
	d := testDevice(t)
	cfg := recipe.Config{Exposure: true}
	x, err := newAppearances(d.dev, firstAppearances(5, []PhotoStart{{}, {0.5, 0}, {}, {-1, 1}, {0.25, 1}}, &cfg))
	if err != nil {
		t.Fatal(err)
	}
	defer x.close()
	table := must.Get(x.download())(t)
	want := layout.Appearance{Camera: 1}
	want.Own[0] = 0.25
	if len(table) != 5 || table[4] != want {
		t.Errorf("it starts with %+v", table)
	}
	table[3].Own[7], table[3].Bias2 = 9, 0.5
	must.Do(t, x.upload(table))
	again, err := x.download()
	if err != nil || fmt.Sprint(again) != fmt.Sprint(table) {
		t.Errorf("%v, %v", again, err)
	}
	if err := x.upload(table[:4]); err == nil {
		t.Error("a table of four rows for five photos: no error")
	}
}

// TestBadMask refuses a mask of the wrong size.
func TestBadMask(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	views[1].Image.Mask = make([]uint32, 3)
	tr := must.Get(trainOn(testDevice(t), views, init, scale, cfg))(t)
	if err := tr.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "mask of 3 words") {
		t.Error(err)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}
