package render

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/scene"
	"vksplat/scene/picture"
)

// TestPictureWriters writes pictures side by side, no more than may be in memory at once, in memory that is used again.
// What fails is told, and ends it.
func TestPictureWriters(t *testing.T) {
	const atOnce, total, inFlight = 3, 20, 2
	full := errors.New("the disk is full")
	for _, failing := range []int{-1, 7} {
		made := map[*picture.Picture]bool{}
		drawn := 0
		w := newPictureWriters(atOnce, meter.New(io.Discard, meter.None, 0, total))
		var flying []func() // pictures that are on the device
		next := func() (bool, error) {
			if len(flying) == 0 {
				return true, nil
			}
			flying[0]()
			flying = flying[1:]
			return false, nil
		}
		var err error
		for i := range total {
			var p *picture.Picture
			if p, err = w.take(context.Background(), next); err != nil {
				break
			}
			made[p] = true
			drawn++
			p.Width = i
			flying = append(flying, func() {
				w.write(p, func(p *picture.Picture) error {
					if p.Width != i {
						t.Errorf("picture %d holds %d when it is written", i, p.Width)
					}
					if i == failing {
						return full
					}
					return nil
				})
			})
			if len(flying) > inFlight {
				_, _ = next()
			}
		}
		for len(flying) > 0 {
			_, _ = next()
		}
		err = errors.Join(w.finish(), err)
		if len(made) > atOnce {
			t.Errorf("memory for %d pictures was made, want %d at most", len(made), atOnce)
		}
		if failing < 0 && (err != nil || drawn != total || w.done != total) {
			t.Errorf("%d drawn and %d written of %d: %v", drawn, w.done, total, err)
		}
		if failing < 0 {
			continue
		}
		if !errors.Is(err, full) {
			t.Errorf("picture %d failed: %v", failing, err)
		}
		if _, err := w.take(context.Background(), nil); !errors.Is(err, full) { // nothing is drawn any more
			t.Errorf("after that: %v", err)
		}
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := newPictureWriters(1, nil).take(stopped, nil); !errors.Is(err, fault.ErrInterrupted) {
		t.Errorf("stopped: %v", err)
	}
}

// TestListPictures leaves out of a video what render writes beside its pictures.
func TestListPictures(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.png", "a.JPG", "b.normal.png", "b.depth.npy", ".c.png", "render.json"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	if names, err := listPictures(dir); err != nil || !slices.Equal(names, []string{"a.JPG", "b.png"}) {
		t.Errorf("%q, %v", names, err)
	}
}

// TestPanoramaRoom counts what making normals takes.
func TestPanoramaRoom(t *testing.T) {
	camera := scene.Camera{Width: 100, Height: 100, Fx: 100, Fy: 100, Cx: 50, Cy: 50}
	p := newPanorama(PixelsFlag{Width: 400, Height: 200}, []scene.Camera{camera})
	cams := p.cameras([]scene.Camera{camera})
	o := NewOptions()
	plain := int64(1)
	for p.check(cams, o.besideBytes(), plain) != nil {
		plain++
	}
	o.Normals = true
	with := plain + 400*200*picture.NormalBytes
	if p.check(cams, o.besideBytes(), with-1) == nil || p.check(cams, o.besideBytes(), with) != nil {
		t.Errorf("with normals a panorama takes not %d bytes more than %d", with-plain, plain)
	}
}
