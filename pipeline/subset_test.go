package pipeline

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/philox"
	"vksplat/pipeline/ref"
	"vksplat/scene"
	"vksplat/scene/picture"
	"vksplat/scene/synth"
)

// cityModel is a model of a made-up city, of which every view shows a part, and views of several sizes.
func cityModel(t *testing.T, n int) (*scene.Splats, []scene.Camera) {
	t.Helper()
	s := must.Get(synth.New(synth.Options{City: true, Images: 100, Width: 128, Height: 96, Points: n}))(t)
	var cams []scene.Camera
	for i, c := range s.Cameras() {
		if i%17 == 3 {
			cams = append(cams, c.Rescaled(c.Width+16*len(cams), c.Height+9*len(cams)))
		}
	}
	return s.Splats(1), cams
}

// TestShare draws a model that is larger than the device, with room for a view at least and with less: the same bytes
// as with room for all.
func TestShare(t *testing.T) {
	s, cams := cityModel(t, 120_000)
	cfg := RenderConfig{Background: [3]float32{0.2, 0.4, 0.6}, Depth: true, Focal: cams[0].Fx / 2}
	want, _ := drawAll(t, DeviceOptions{}, s, cams, cfg)
	d, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE")})
	if err != nil {
		t.Fatal(err)
	}
	w, err := (&renderPlan{d, s.Degree, cams, RenderConfig{Depth: true}}).needs(s.N)
	must.Do(t, errors.Join(err, d.Close()))
	banded := false
	for _, share := range []float64{0.7, 0.3, 0.17} {
		o := DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE"), MaxVRAM: fmt.Sprint(int64(share * float64(w.device)))}
		d, err := OpenDevice(o)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewRenderer(d, s, cams[:1], cfg)
		if err != nil {
			t.Fatal(share, err, fault.Hint(err))
		}
		if !r.Shared() || r.subset.most >= s.N {
			t.Fatalf("with %g of the memory there is room for %d splats of %d", share, r.subset.most, s.N)
		}
		got := make([]*picture.Picture, len(cams))
		for i, c := range cams {
			got[i] = &picture.Picture{}
			if err := r.Add(c, got[i], func() {}); err != nil {
				t.Fatal(share, err)
			}
		}
		must.Do(t, r.Drain())
		banded = banded || r.Bands() > 1
		samePictures(t, fmt.Sprint(share), got, want)
		t.Logf("%g of the memory: %d of %d splats at once, %d bands", share, r.subset.most, s.N, r.Bands())
		must.Do(t, errors.Join(r.Close(), d.Close()))
	}
	if !banded {
		t.Error("no picture was drawn in bands for want of room for splats")
	}
}

// TestShareRange draws a model of which the device has room for all, but what it keeps of each splat is more than a
// binding may span: the same bytes.
func TestShareRange(t *testing.T) {
	s, cams := cityModel(t, 60_000)
	want, _ := drawAll(t, DeviceOptions{}, s, cams, RenderConfig{})
	limits := filepath.Join(t.TempDir(), "limits.json")
	must.Do(t, os.WriteFile(limits, []byte(`{"maxStorageBufferRange": 1048576}`), 0o644))
	t.Setenv("VKSPLAT_LIMITS", limits)
	d, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE")})
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRenderer(d, s, cams[:1], RenderConfig{})
	if err != nil {
		t.Fatal(errors.Join(err, d.Close()))
	}
	if !r.Shared() {
		t.Error("all splats are on the device at once")
	}
	got := make([]*picture.Picture, len(cams))
	for i, c := range cams {
		got[i] = &picture.Picture{}
		must.Do(t, r.Add(c, got[i], func() {}))
	}
	must.Do(t, r.Drain())
	samePictures(t, "a range of 1 MiB", got, want)
	must.Do(t, errors.Join(r.Close(), d.Close()))
}

// TestShareTooSmall: no room for what a row of tiles shows is an error, and no crash.
func TestShareTooSmall(t *testing.T) {
	s, cams := cityModel(t, 60_000)
	for i := range s.LogScales { // every splat is everywhere
		s.LogScales[i] = 5
	}
	d, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE"), MaxVRAM: "12M"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := must.Get(NewRenderer(d, s, cams, RenderConfig{}))(t)
	fullest := fmt.Sprintf("one row of tiles may show %d splats of the model, %d fit",
		r.subset.fullestRow(&cams[0], &r.cfg),
		r.subset.most)
	_, err = r.RenderInto(nil, cams[0])
	err = errors.Join(err, r.Close())
	if !errors.Is(err, ErrTooSmall) || !strings.Contains(err.Error(), fullest) {
		t.Errorf("%v, want %v: %s", err, ErrTooSmall, fullest)
	}
	if hint := fault.Hint(err); !strings.Contains(hint, "max-vram") || strings.Contains(hint, "init-grid") {
		t.Errorf("the hint is of training: %s", hint)
	}
}

// TestMisses: whatever the reference of the projection shows, in single precision, is not said to be missed; near the
// camera, at the edges, huge and tiny.
func TestMisses(t *testing.T) {
	_, cams := cityModel(t, 100)
	const n = 40_000
	s := scene.NewSplats(n, 0)
	for i := range n {
		bits := philox.Block([4]uint32{uint32(i), 1, 0, 7}, philox.Key(3))
		more := philox.Block([4]uint32{uint32(i), 2, 0, 7}, philox.Key(3))
		c := cams[i%len(cams)].Center()
		spread := math.Pow(10, 3*philox.Uniform(more[0])-2)
		for k := range 3 {
			s.Means[3*i+k] = float32(c[k] + spread*(2*philox.Uniform(bits[k])-1))
			s.LogScales[3*i+k] = float32(math.Log(math.Pow(10, 5*philox.Uniform(more[1+k%3])-4)))
		}
		s.Quats[4*i], s.Quats[4*i+1] = 1, float32(philox.Uniform(bits[3]))
		s.LogitOpacities[i] = 6
	}
	for k, c := range cams {
		m := &subset{whole: s, widths: make([]float32, n)}
		for i := range n {
			m.widths[i] = float32(math.Exp(float64(slices.Max(s.LogScales[3*i : 3*i+3]))))
		}
		v := &ref.View[float32]{Width: c.Width, Height: c.Height, Fx: float32(c.Fx), Fy: float32(c.Fy),
			Cx: float32(c.Cx), Cy: float32(c.Cy), Near: 0.01}
		for i, x := range c.R {
			v.R[i] = float32(x)
		}
		for i, x := range c.T {
			v.T[i] = float32(x)
		}
		kept := m.visible(&c, 0.01, 0, 0, c.Height)
		in := map[int]bool{}
		for _, id := range kept {
			in[int(id)] = true
		}
		shown := ref.Project(paramsOf(s), v)
		seen := 0
		for i := range n {
			if shown.Visible(i) {
				seen++
				if !in[i] {
					t.Fatalf("view %d: splat %d at %v of width %g is shown and said to be missed", k, i,
						s.Means[3*i:3*i+3], m.widths[i])
				}
			}
		}
		if seen == 0 || len(kept) == n {
			t.Errorf("view %d: %d shown, %d kept of %d", k, seen, len(kept), n)
		}
		for band := range 3 { // the rows of a band show no more than the picture
			first, rows := partRows(c.Height, band, 3)
			if part := m.visible(&c, 0.01, 0, first, rows); len(part) > len(kept) || !slices.IsSorted(part) {
				t.Errorf("view %d: band %d keeps %d of %d, in order: %v", k, band, len(part), len(kept),
					slices.IsSorted(part))
			}
		}
	}
}
