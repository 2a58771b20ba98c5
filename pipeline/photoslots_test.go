package pipeline

import (
	"os"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
)

// TestPhotosInPlace trains on photos with masks, which the loss reads where they are kept, or that are copied for it
// because there is no room, or because they are kept apart: the same model. No copy is left where they are kept.
func TestPhotosInPlace(t *testing.T) {
	d := testDevice(t)
	views, init, scale, cfg := partialScene(t)
	for i := range views {
		views[i].Camera.Mask = "a file" // there is room for masks
	}
	cams, _ := splitViews(views)
	all, most := photos.LayoutOf(cams).Totals(cams)
	want := ""
	for _, c := range []struct {
		name  string
		bytes int64
		apart bool
	}{
		{"all", all, false}, {"three", 3 * most, false}, {"none", -1, false}, {"all apart", all, true},
		{"three apart", 3 * most, true},
	} {
		tr := must.Get(trainWith(d, views, init, scale, cfg, TrainerOptions{PhotoBytes: c.bytes}))(t)
		p := tr.shards.first.photos
		if !p.direct {
			t.Fatalf("%s: photos are not read where they are kept", c.name)
		}
		if n := len(p.slots); c.apart {
			must.Do(t, p.freeSlots())
			must.Do(t, p.makeApart(n))
			tr.shards.first.e.setup.target = p.bound
			must.Do(t, tr.shards.first.e.memory.buildToFit())
		}
		got := endHash(t, tr)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
		for view, slot := range p.slotOf {
			if slot >= 0 && p.cached(view).src.IsZero() == c.apart {
				t.Errorf("%s: the photo of view %d is copied: %v", c.name, view, !c.apart)
			}
		}
		if p.complete() != (c.bytes == all) {
			t.Errorf("%s: %d photos are kept", c.name, p.filled)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPhotoSlotsApart makes caches around the largest binding of a device: one that a binding spans with the target has
// it in its buffer.
func TestPhotoSlotsApart(t *testing.T) {
	limits := t.TempDir() + "/limits.json"
	const binding = 1 << 20
	must.Do(t, os.WriteFile(limits, []byte(`{"maxStorageBufferRange": 1048576}`), 0o644))
	t.Setenv("VKSPLAT_LIMITS", limits)
	d := testDevice(t)
	before := d.dev.Stats()
	const side = 256
	cams := planCameras(4, side, side)
	for _, over := range []int{0, 1} {
		shape := must.Get(newSetup(d.dev, 0, cams, []recipe.Kind{recipe.Step}))(t)
		p := photoSlots{dev: d.dev, cams: cams, layout: photos.LayoutOf(cams), words: shape.targetWords()}
		fit := (binding/4-p.words)/(side*side) + over
		must.Do(t, p.makeSlots(fit))
		if p.direct != (over == 0) || len(p.slots) != fit || p.bound.N() > binding/4 || p.target.words.N() != p.words ||
			p.bound.At(int(p.target.offset), p.words) != p.target.words {
			t.Errorf("%d slots: read in place: %v, %d words are bound", len(p.slots), p.direct, p.bound.N())
		}
		if err := p.freeSlots(); err != nil {
			t.Error(err)
		}
	}
	if now := d.dev.Stats(); now.InUse != before.InUse {
		t.Errorf("%d bytes are left", now.InUse-before.InUse)
	}
}
