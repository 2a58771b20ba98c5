package sky

import (
	"context"
	"image"
	"io"
	"math"
	"slices"
	"testing"

	"vksplat/internal/atomicfile"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/photo"
	"vksplat/scene/synth"
)

// enough is room for all photos of a test at a time.
const enough = 1 << 30

// capture makes a procedural capture, in the training frame, and the numbers of its photos.
func capture(t *testing.T, o synth.Options) *scene.Capture {
	t.Helper()
	o.Images, o.Width, o.Height, o.Points, o.Scale = 48, 64, 48, 1500, 3
	o.Offset = [3]float64{20, -30, 40}
	dir := t.TempDir()
	must.Do(t, synth.Write(dir, o))
	c := must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel, Downscale: 1}))(t)
	c.Normalise()
	return c
}

// TestFind finds an open sky, beyond all cameras and points, in the colours that photos have there, and none where the
// same is painted on a dome that has points.
func TestFind(t *testing.T) {
	ctx := context.Background()
	c := capture(t, synth.Options{})
	if shell, err := Find(ctx, c, enough); err != nil || len(shell.Points) > 0 {
		t.Errorf("a dome: %d points, %v", len(shell.Points), err)
	}
	c = capture(t, synth.Options{Open: true})
	shell, err := Find(ctx, c, enough)
	if err != nil || len(shell.Points) < 2*leastCells {
		t.Fatalf("%d points, %v", len(shell.Points), err)
	}
	farthest := 0.0
	for _, p := range c.Points {
		farthest = max(farthest, geom.Length(p.Pos))
	}
	if shell.Radius < 10*max(farthest, c.SceneScale) {
		t.Errorf("radius %g, the farthest point is %g away", shell.Radius, farthest)
	}
	up := must.Get(scene.MeanUp(c.Cameras))(t)
	var off []float64
	for _, i := range []int{0, 13, 26, 39} {
		cam := &c.Cameras[i]
		img := must.Get(photo.Decode(*cam))(t)
		for _, p := range shell.Points {
			if r := geom.Length(p.Pos); math.Abs(r/shell.Radius-1) > 1e-9 || geom.Dot(p.Pos, up) < lowest*r {
				t.Fatalf("a point at %v, %g of %g away", p.Pos, r, shell.Radius)
			}
			if u, v, _, in := cam.Project(p.Pos, 0, math.Inf(1)); in {
				at := 4 * (int(v)*cam.Width + int(u))
				for ch := range 3 {
					off = append(off, math.Abs(float64(img.Pix[at+ch])-float64(p.Color[ch])))
				}
			}
		}
	}
	slices.Sort(off)
	// Nine tenths: things stand in front of some.
	if worst := off[len(off)*9/10]; len(off) < 300 || worst > 16 {
		t.Errorf("%d colours, off by up to %g of 255", len(off), worst)
	}
	if little, err := Find(ctx, c, 1); err != nil || !slices.Equal(little.Points, shell.Points) {
		t.Errorf("with little room: %d points, not %d, %v", len(little.Points), len(shell.Points), err)
	}
	few := *c
	few.Cameras = c.Cameras[:4]
	if shell, err := Find(ctx, &few, enough); err != nil || len(shell.Points) > 0 {
		t.Errorf("four photos: %d points, %v", len(shell.Points), err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := Find(ended, c, enough); err == nil {
		t.Error("an ended context: no error")
	}
}

// TestAgreement: where no point is, there is sky only if photos agree on its colour.
func TestAgreement(t *testing.T) {
	c := capture(t, synth.Options{Open: true})
	for _, x := range []struct {
		name string
		grey func(i int) uint8 // of photo i
		sky  bool
	}{
		{"the same", func(int) uint8 { return 100 }, true},
		{"nearly the same", func(i int) uint8 { return uint8(95 + i%11) }, true},
		{"different", func(i int) uint8 { return uint8(97 * i) }, false},
	} {
		for i := range c.Cameras {
			img := image.NewGray(image.Rect(0, 0, 64, 48))
			for k := range img.Pix {
				img.Pix[k] = x.grey(i)
			}
			must.Do(t, atomicfile.Write(c.Cameras[i].Path, func(w io.Writer) error {
				return photo.EncodePNG(w, img)
			}))
		}
		if shell, err := Find(context.Background(), c, enough); err != nil || len(shell.Points) > 0 != x.sky {
			t.Errorf("%s: %d points, %v", x.name, len(shell.Points), err)
		}
	}
}

// TestAtOnce: as many photos are decoded at a time as the largest fits into the room, at least one.
func TestAtOnce(t *testing.T) {
	c := capture(t, synth.Options{})
	var largest int64
	for _, cam := range c.Cameras {
		largest = max(largest, photo.DecodeBytes(cam)+4*64*48)
	}
	for room, want := range map[int64]int{
		0: 1, largest: 1, 3*largest - 1: 2, 3 * largest: 3, math.MaxInt64: mostPhotos,
	} {
		if n := atOnce(c.Cameras, room); n != want {
			t.Errorf("%d at once in %d bytes, want %d", n, room, want)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		pixels  [][4]uint8
		seen    int
		color   [3]uint8
		differs float64
	}{
		{nil, 0, [3]uint8{}, 0},
		{[][4]uint8{{9, 9, 9, 0}, {9, 9, 9, 254}}, 0, [3]uint8{}, 0},
		{[][4]uint8{{10, 20, 30, 255}, {10, 20, 30, 255}, {10, 20, 30, 255}, {1, 1, 1, 0}}, 3, [3]uint8{10, 20, 30}, 0},
		{[][4]uint8{{0, 20, 30, 255}, {10, 20, 30, 255}, {255, 20, 30, 255}}, 3, [3]uint8{10, 20, 30}, 1.0 / 9},
	} {
		var k cell
		k.judge(c.pixels)
		if k.seen != c.seen || k.color != c.color || math.Abs(k.differs-c.differs) > 1e-12 {
			t.Errorf("%v: %d seen, colour %v, differs by %g", c.pixels, k.seen, k.color, k.differs)
		}
	}
}
