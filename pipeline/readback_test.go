package pipeline

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/scene"
)

// TestReadSplats reads models back in pieces of sizes that divide neither chunk nor model: what was uploaded, in order,
// and never more than a piece.
func TestReadSplats(t *testing.T) {
	d := testDevice(t)
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct{ n, degree, chunk, piece int }{
		{1, 0, 256, 256}, {600, 3, 256, 100}, {1000, 1, 320, 299}, {5000, 2, 4160, pieceSplats}, {512, 3, 256, 256},
	} {
		m, err := newModel(d.dev, c.degree)
		if err != nil {
			t.Fatal(err)
		}
		m.unit = c.chunk
		want := scene.NewSplats(c.n, c.degree)
		for _, x := range [][]float32{want.Means, want.Quats, want.LogScales, want.LogitOpacities, want.SH} {
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
		}
		must.Do(t, m.upload(want))
		largest := 0
		got := scene.NewSplats(c.n, c.degree)
		gather := gathered(got)
		err = m.read(c.n, c.piece, func(p *scene.Splats) error {
			largest = max(largest, p.N)
			return gather(p)
		})
		if err != nil || !reflect.DeepEqual(got, want) || largest > max(c.piece, checkpoint.MinPiece) {
			t.Errorf("%+v: %v; the same splats: %v; %d at once", c, err, reflect.DeepEqual(got, want), largest)
		}
		stop := errors.New("enough")
		before := d.dev.Stats().InUse
		if err := m.read(c.n, c.piece, func(*scene.Splats) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("%+v: got %v, want %v", c, err, stop)
		}
		if use := d.dev.Stats().InUse; use != before {
			t.Errorf("%+v: %d bytes are in use after an error, %d before", c, use, before)
		}
		must.Do(t, m.close())
	}
	// RAM does not grow with the model.
	if small, large := readbackBytes(3, 20_000), readbackBytes(3, 20_000_000); large != small || large > 32<<20 {
		t.Errorf("%d bytes for 20,000 splats, %d for 20 million", small, large)
	}
}

// TestPicturePieces reads a picture that is larger than a piece: its lower rows are those of a view of them alone,
// which is one piece.
func TestPicturePieces(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	small := views[0].Camera
	large := small.Rescaled(small.Width*picturePiece/(small.Width*small.Height)+small.Width+1, small.Height+2)
	low := large
	low.Height = (picturePiece - 1) / large.Width
	low.Cy -= float64(large.Height - low.Height)
	if n := large.Width * large.Height; n <= picturePiece || n%picturePiece == 0 || low.Height >= large.Height {
		t.Fatalf("%d pixels are no more than a piece, or whole pieces", n)
	}
	r := must.Get(trainOn(testDevice(t), views, init, scale, cfg))(t)
	defer r.Close()
	var pictures [][]float32
	for _, c := range []scene.Camera{large, low, large} { // the first makes room
		p, err := r.RenderInto(nil, c)
		if err != nil || len(p) != 3*c.Width*c.Height {
			t.Fatalf("%d numbers for %dx%d pixels: %v", len(p), c.Width, c.Height, err)
		}
		pictures = append(pictures, p)
	}
	if slices.Max(pictures[0]) <= 0 || !slices.Equal(pictures[0], pictures[2]) {
		t.Error("the pictures differ, or are black")
	}
	rest, off := pictures[0][3*large.Width*(large.Height-low.Height):], 0.0
	for i, x := range pictures[1] {
		off += math.Abs(float64(x - rest[i]))
	}
	if off /= float64(len(rest)); !(off < 1e-3) {
		t.Errorf("the lower rows are %g off, on average", off)
	}
}
