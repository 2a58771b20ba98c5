package pipeline

import (
	"errors"
	"os"
	"regexp"
	"testing"

	"vksplat/internal/fault"
	"vksplat/pipeline/ref"
	"vksplat/scene"
	"vksplat/scene/picture"
)

// TestRowPairs counts the pairs of rows as count_tiles' twin does, whatever the pieces.
func TestRowPairs(t *testing.T) {
	s, cams := renderViews(t)
	cfg := &RenderConfig{Near: 0.01}
	whole, pieces := countRows(s.N, cams, cfg).addAll(s), countRows(s.N, cams, cfg)
	for lo := 0; lo < s.N; lo += 7 {
		if err := pieces.add(s.Slice(lo, min(lo+7, s.N))); err != nil {
			t.Fatal(err)
		}
	}
	all := make([]uint32, s.N)
	for i := range all {
		all[i] = uint32(i)
	}
	for k, v := range whole.views {
		g, p := v.Grid(), ref.Project(paramsOf(s), v)
		for row := range g.Rows {
			want := 0
			for i, n := range ref.CountTiles(p, all, g.Band(row, g.Rows)) {
				if p.Visible(i) {
					want += int(n)
				}
			}
			if whole.rows[k][row] != want || pieces.rows[k][row] != want {
				t.Errorf("view %d, row %d: %d and %d pairs, want %d", k, row, whole.rows[k][row], pieces.rows[k][row],
					want)
			}
		}
	}
	if n := len(countRows(mostProjected/2, cams, cfg).views); n != 2 {
		t.Errorf("%d views of large models are looked at", n)
	}
}

// TestRowShortages draws splats of which each row of tiles shows many, in too little memory: whether the model does
// not fit, or a share of it, or a picture, the error says how much is enough, and it is, at once.
func TestRowShortages(t *testing.T) {
	s, cams := cityModel(t, 6_000)
	for i := range s.LogScales { // nearly every splat is everywhere
		s.LogScales[i] = 0
	}
	// The first row that fails is no measure of the others.
	cams = []scene.Camera{cams[0].Rescaled(320, 40), cams[1].Rescaled(640, 40)}
	draw := func(vram string) (shared bool, err error) {
		d, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE"), MaxVRAM: vram})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		r, err := NewRenderer(d, s, cams, RenderConfig{Smaller: "make them smaller"})
		if err != nil {
			return false, err
		}
		pictures := make([]picture.Picture, len(cams))
		for i, c := range cams {
			if err == nil {
				err = r.Add(c, &pictures[i], func() {})
			}
		}
		if err == nil {
			err = r.Drain()
		}
		return r.Shared(), errors.Join(err, r.Close())
	}
	for _, vram := range leastBudgets(t, s, cams) {
		shared, err := draw(vram)
		t.Logf("%s, a share of the model %v: %v; %s", vram, shared, err, fault.Hint(err))
		enough := regexp.MustCompile(`raise max-vram to (\d+MiB) or more`).FindStringSubmatch(fault.Hint(err))
		if !IsShortage(err) || enough == nil {
			t.Errorf("%s: got %v; %s", vram, err, fault.Hint(err))
			continue
		}
		if _, err := draw(enough[1]); err != nil {
			t.Errorf("after %s, %s is said to be enough: %v; %s", vram, enough[1], err, fault.Hint(err))
		}
	}
}

// leastBudgets are budgets of which none has room for the pictures: next to nothing, parts of what a model takes
// without a full row of tiles, and that.
func leastBudgets(t *testing.T, s *scene.Splats, cams []scene.Camera) []string {
	t.Helper()
	d, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE")})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w, err := d.renderNeeds(s.N, s.Degree, cams, &parts{})
	if err != nil {
		t.Fatal(err)
	}
	return []string{"1KiB", mib(w.device / 2), mib(w.device * 3 / 4), mib(w.device)}
}
