package pipeline

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/picture"
	"vksplat/shaders/layout"
)

// drawAll makes pictures of the cameras with a renderer of its own, and says in how many bands.
func drawAll(t *testing.T, o DeviceOptions, s *scene.Splats, cams []scene.Camera, cfg RenderConfig) ([]*picture.Picture,
	int) {
	t.Helper()
	o.Select = os.Getenv("VKSPLAT_DEVICE")
	d, err := OpenDevice(o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := NewRenderer(d, s, cams[:1], cfg)
	if err != nil {
		t.Fatal(err, fault.Hint(err))
	}
	defer r.Close()
	pictures := make([]*picture.Picture, len(cams))
	next := 0
	for i, c := range cams {
		pictures[i] = &picture.Picture{}
		must.Do(t, r.Add(c, pictures[i], func() {
			if i != next {
				t.Errorf("picture %d is complete, picture %d is not", i, next)
			}
			next++
		}))
	}
	must.Do(t, r.Drain())
	if next != len(cams) {
		t.Errorf("%d of %d pictures are complete", next, len(cams))
	}
	return pictures, r.Bands()
}

// renderViews are views of the promise scene, of several sizes.
func renderViews(t *testing.T) (*scene.Splats, []scene.Camera) {
	views, init, _, _ := wholeScene(t)
	var cams []scene.Camera
	for i, v := range views[:5] {
		c := v.Camera
		cams = append(cams, c.Rescaled(c.Width*(3+i%3), c.Height*(3+i%3)+i))
	}
	return init, cams
}

func samePictures(t *testing.T, what string, got, want []*picture.Picture) {
	t.Helper()
	for i := range want {
		if got[i].Width != want[i].Width || !slices.Equal(got[i].Pix, want[i].Pix) ||
			!slices.Equal(got[i].Color, want[i].Color) || !slices.Equal(got[i].Depth, want[i].Depth) {
			t.Errorf("%s: picture %d has other bytes", what, i)
		}
	}
}

// TestRenderParts draws in one piece, in bands, with little memory, bytes and floats: the same pictures.
func TestRenderParts(t *testing.T) {
	s, cams := renderViews(t)
	cfg := RenderConfig{Background: [3]float32{0.2, 0.4, 0.6}, Depth: true}
	whole, bands := drawAll(t, DeviceOptions{}, s, cams, cfg)
	if bands != 1 {
		t.Fatalf("%d bands with all memory", bands)
	}
	for _, n := range []int{2, 5, 100} {
		inBands(t, n)
		parts, ended := 0, 0
		cfg.Part = func(done, of int) {
			parts++
			if done == of {
				ended++
			}
		}
		got, bands := drawAll(t, DeviceOptions{}, s, cams, cfg)
		if parts < 2*len(cams) || ended < len(cams) {
			t.Errorf("%d parts of %d pictures are told of, %d the last", parts, len(cams), ended)
		}
		if bands < 2 {
			t.Errorf("%d bands, asked for %d", bands, n)
		}
		samePictures(t, fmt.Sprintf("%d bands", n), got, whole)
	}
	os.Unsetenv("VKSPLAT_BANDS")
	cfg.Packed = true
	packed, _ := drawAll(t, DeviceOptions{}, s, cams, cfg)
	for i, p := range packed {
		for k, b := range p.Pix {
			x := float64(whole[i].Color[k])
			if k%4 == 3 {
				x = 1 - x
			}
			if math.Abs(255*min(max(x, 0), 1)-float64(b)) > 0.501 {
				t.Fatalf("picture %d: byte %d is %d of %g", i, k, b, x)
			}
		}
		if !slices.Equal(p.Depth, whole[i].Depth) {
			t.Errorf("picture %d: the depth is another", i)
		}
	}
}

// TestRenderLarge draws a picture that is larger than its memory: in bands, with the bytes of one piece.
func TestRenderLarge(t *testing.T) {
	s, cams := renderViews(t)
	c := cams[0].Rescaled(1600, 1200)
	whole, _ := drawAll(t, DeviceOptions{}, s, []scene.Camera{c}, RenderConfig{Packed: true})
	got, bands := drawAll(t, DeviceOptions{MaxVRAM: "24MiB"}, s, []scene.Camera{c}, RenderConfig{Packed: true})
	if bands < 2 {
		t.Errorf("%d bands of 30 MB in 24 MiB", bands)
	}
	samePictures(t, "little memory", got, whole)
	if n := len(whole[0].Pix); n != 4*1600*1200 || slices.Max(whole[0].Pix) < 100 {
		t.Errorf("%d bytes, or black", n)
	}
}

// TestRenderFiltered draws pictures three times as large as those of training: every third pixel is one of training, so
// that there are no gaps between small splats. Without the focal length of training it is not.
func TestRenderFiltered(t *testing.T) {
	s, cams := renderViews(t)
	for i := range s.LogScales {
		s.LogScales[i] -= 2 // mostly below a pixel
	}
	for _, antialiased := range []bool{false, true} {
		large := cams[0]
		c := large.Rescaled(large.Width/3, large.Height/3)
		cfg := RenderConfig{Antialiased: antialiased, Focal: scene.TrainedFocal([]scene.Camera{c})}
		small, _ := drawAll(t, DeviceOptions{}, s, []scene.Camera{c}, RenderConfig{Antialiased: antialiased})
		same, _ := drawAll(t, DeviceOptions{}, s, []scene.Camera{c}, cfg)
		samePictures(t, "a picture of training", same, small)
		bare, _ := drawAll(t, DeviceOptions{}, s, []scene.Camera{large}, RenderConfig{Antialiased: antialiased})
		got, _ := drawAll(t, DeviceOptions{}, s, []scene.Camera{large}, cfg)
		inBands(t, 5)
		parts, _ := drawAll(t, DeviceOptions{}, s, []scene.Camera{large}, cfg)
		os.Unsetenv("VKSPLAT_BANDS")
		samePictures(t, "in bands", parts, got)
		off := func(p *picture.Picture) (most float64) {
			for y := range c.Height {
				for x := range c.Width {
					for k := range 4 {
						a, b := p.Color[4*((3*y+1)*large.Width+3*x+1)+k], small[0].Color[4*(y*c.Width+x)+k]
						most = max(most, math.Abs(float64(a-b)))
					}
				}
			}
			return most
		}
		if got, bare := off(got[0]), off(bare[0]); got > 2e-3 || bare < 0.1 {
			t.Errorf("antialiased %v: pixels are %g off those of training, without its focal length %g", antialiased,
				got, bare)
		}
	}
}

// TestRenderDepth draws splats in front of each other: the depth is that of the nearer where it is opaque, and between
// the two, with as wide a spread, where half of it is seen through.
func TestRenderDepth(t *testing.T) {
	s := scene.NewSplats(4, 0)
	for i, at := range [][4]float32{{0, 0, 3, 20}, {1.2, 0, 5, 20}, {-0.75, 0, 3, 0}, {-1.25, 0, 5, 20}} {
		copy(s.Means[3*i:], at[:3])
		s.Quats[4*i], s.LogitOpacities[i] = 1, at[3]
		for k := range 3 {
			s.LogScales[3*i+k] = -2
		}
	}
	c := scene.Camera{Width: 64, Height: 64, Fx: 64, Fy: 64, Cx: 32, Cy: 32, R: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}}
	got, _ := drawAll(t, DeviceOptions{}, s, []scene.Camera{c},
		RenderConfig{Depth: true, Spread: true, Background: [3]float32{1, 1, 1}})
	// The first hides all but a hundredth of what is behind it: alpha is 0.999 at most, and the second is beside it.
	for _, want := range []struct {
		x, y      int
		z, spread float64
	}{{32, 32, 3, 0}, {47, 32, 5, 0}, {0, 0, 0, 0}, {16, 32, 4, 1}} {
		pixel := 64*want.y + want.x
		z, spread := float64(got[0].Depth[pixel]), float64(got[0].Spread[pixel])
		if math.Abs(z-want.z) > 0.03 || math.Abs(spread-want.spread) > 0.03 {
			t.Errorf("pixel %d, %d: depth %g and spread %g, want %g and %g", want.x, want.y, z, spread, want.z,
				want.spread)
		}
	}
}

// TestRenderRecovers starts with room for too few pairs: pictures that were in flight are drawn again, with the same
// bytes, after growth and, where there is no room for that, in more bands.
func TestRenderRecovers(t *testing.T) {
	s, cams := renderViews(t)
	for _, cfg := range []RenderConfig{{Packed: true}, {Depth: true}} {
		want, _ := drawAll(t, DeviceOptions{}, s, cams, cfg)
		for name, most := range map[string]int{"growth": 0, "bands": 32 * layout.MostBucket} {
			r := must.Get(NewRenderer(testDevice(t), s, cams, cfg))(t)
			defer r.Close()
			r.e.setup.isectCapacity, r.e.memory.isectMost = layout.MostBucket, most
			must.Do(t, errors.Join(r.e.programs.free(), r.e.programs.build()))
			got, done := make([]*picture.Picture, len(cams)), 0
			for i, c := range cams {
				got[i] = &picture.Picture{}
				if err := r.Add(c, got[i], func() { done++ }); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if err := r.Drain(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if done != len(cams) || r.e.setup.isectCapacity == layout.MostBucket || (r.Bands() > 1) != (most > 0) {
				t.Errorf("%s: %d of %d pictures, room for %d pairs, %d bands", name, done, len(cams),
					r.e.setup.isectCapacity,
					r.Bands())
			}
			samePictures(t, name, got, want)
		}
	}
}
