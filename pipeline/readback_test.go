package pipeline

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"vksplat/scene"
)

// TestReadSplats reads models back in pieces of sizes that divide neither chunk nor model: what was uploaded, in order, and never more than a piece.
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
		if err := m.upload(want); err != nil {
			t.Fatal(err)
		}
		largest := 0
		got := scene.NewSplats(c.n, c.degree)
		gather := gathered(got)
		err = m.read(c.n, c.piece, func(p *scene.Splats) error {
			largest = max(largest, p.N)
			return gather(p)
		})
		if err != nil || !reflect.DeepEqual(got, want) || largest > max(c.piece, minPiece) {
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
		if err := m.close(); err != nil {
			t.Fatal(err)
		}
	}
	// RAM does not grow with the model.
	if small, large := readbackBytes(3, 20_000), readbackBytes(3, 20_000_000); large != small || large > 32<<20 {
		t.Errorf("%d bytes for 20,000 splats, %d for 20 million", small, large)
	}
}

// TestPictureApart reads pictures from memory that the host cannot read, in pieces: the same pixels.
func TestPictureApart(t *testing.T) {
	views, init, _, _ := promiseScene(t)
	d := testDevice(t)
	small := views[0].Camera
	large := small.Rescaled(small.Width*picturePiece/(small.Width*small.Height)+small.Width+1, small.Height+2)
	if n := large.Width * large.Height; n <= picturePiece || n%picturePiece == 0 {
		t.Fatalf("%d pixels are no more than a piece, or whole pieces", n)
	}
	var pictures [][]float32
	for _, apart := range []bool{false, true} {
		r, err := NewRenderer(d, init, []scene.Camera{small}, RenderConfig{})
		if err != nil {
			t.Fatal(err)
		}
		r.e.picturesApart = apart
		p, err := r.Render(large) // makes the buffer anew
		if err != nil {
			t.Fatal(err)
		}
		if there := r.e.picture.View.Host() != nil; there == apart {
			t.Fatalf("apart %v: the host reads the picture: %v", apart, there)
		}
		pictures = append(pictures, p)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if slices.Max(pictures[0]) <= 0 || !slices.Equal(pictures[0], pictures[1]) {
		t.Error("the pictures differ, or are black")
	}
}
