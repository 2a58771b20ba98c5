package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// planCameras are n cameras of one size.
func planCameras(n, width, height int) (cams []scene.Camera) {
	for range n {
		cams = append(cams, scene.Camera{Width: width, Height: height, Fx: 1000, Fy: 1000})
	}
	return cams
}

// TestPlan plans captures of known size in known budgets: nothing is allocated for it.
func TestPlan(t *testing.T) {
	t.Setenv("VKSPLAT_SERIAL", "") // with which no scratch buffers share memory, and ceilings are lower
	mcmc := recipe.MCMC()
	for _, c := range []struct {
		name          string
		budget        int64
		photos        int
		width, height int
		splats        int
		cfg           recipe.Config
		least, most   int // of the ceiling
	}{
		{"1 GB for a room", 1e9, 255, 1559, 1039, 206_613, mcmc, 800_000, 1_000_000},
		{"6 GB for a hall", 6e9, 600, 1600, 1067, 3_000_000, recipe.Default(), 3_000_000, 6_000_000},
		{"a demo", 1e9, 48, 256, 192, 5000, recipe.Default(), 500_000, 1_400_000},
		{"large photos", 4e9, 300, 2400, 1400, 100_000, recipe.Default(), 500_000, 4_000_000},
	} {
		d := budgetDevice(t, c.budget)
		d.host = 4 << 30
		before := d.dev.Stats().AllocCalls
		cams := planCameras(c.photos, c.width, c.height)
		plan, err := d.Plan(cams, c.splats, c.cfg, TrainerOptions{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		text := must.Get(json.Marshal(plan))(t)
		t.Logf("%s: %d chunks, %s", c.name, (plan.Ceiling+plan.ChunkSplats-1)/plan.ChunkSplats, text)
		if plan.Ceiling < c.least || plan.Ceiling > c.most || plan.Device.Total > c.budget ||
			plan.Device.Start > plan.Device.Total {
			t.Errorf("%s: ceiling %d, want %d to %d", c.name, plan.Ceiling, c.least, c.most)
		}
		again, err := d.Plan(cams, c.splats, c.cfg, TrainerOptions{})
		if err != nil || !reflect.DeepEqual(plan, again) || d.dev.Stats().AllocCalls != before {
			t.Errorf("%s: the plan is not a function of its arguments, or took memory: %v", c.name, err)
		}
		// A run that goes on has the ceiling that it had, also where there is more memory now. Where there is less it
		// may go on: it may never get there.
		kept, err := budgetDeviceHost(t, 3*c.budget).Plan(cams, c.splats, c.cfg, TrainerOptions{Ceiling: plan.Ceiling})
		if err != nil || kept.Ceiling != plan.Ceiling {
			t.Errorf("%s: %v; the ceiling is not kept", c.name, err)
		}
		less, err := budgetDeviceHost(t, c.budget/2).Plan(cams, c.splats, c.cfg, TrainerOptions{Ceiling: plan.Ceiling})
		if err == nil && less.Ceiling > plan.Ceiling || err != nil && !errors.Is(err, ErrTooSmall) {
			t.Errorf("%s: %v; half the memory has a larger ceiling", c.name, err)
		}
	}
	d := budgetDevice(t, 1e9)
	d.host = 20 << 20
	if _, err := d.Plan(planCameras(10, 2400, 1400), 1000, recipe.Default(), TrainerOptions{}); !errors.Is(err,
		ErrLittleRAM) || fault.Hint(err) == "" {
		t.Errorf("got %v, want %v", err, ErrLittleRAM)
	}
}

// budgetDeviceHost is budgetDevice with enough RAM.
func budgetDeviceHost(t *testing.T, bytes int64) *Device {
	d := budgetDevice(t, bytes)
	d.host = 16 << 30
	return d
}

// TestChunkSizes grows small and large models as refinement does: few chunks, and little of the last one stands empty.
func TestChunkSizes(t *testing.T) {
	d := testDevice(t)
	for _, c := range []struct{ ceiling, start, end int }{
		{1, 1, 1}, {5000, 700, 5000}, {200_000, 8000, 200_000}, {1_000_000, 12_000, 1_000_000},
		{150_000_000, 12_000, 220_000}, {0, 60_000, 1_500_000}, {150_000_000, 60_000, 40_000_000},
	} {
		m := must.Get(newModel(d.dev, 3))(t)
		m.setUnit(c.ceiling)
		if m.unit%64 != 0 || m.unitBytes() > maxBinding(d.dev) || c.ceiling <= 1_000_000 && m.unitBytes() > 16<<20 {
			t.Errorf("units of %d splats, %d bytes", m.unit, m.unitBytes())
		}
		chunks := 0
		for n := c.start; ; n = min(c.end, n+n/20+1) {
			if n > m.capacity() {
				room := n
				if c.ceiling > 0 && chunks > 0 {
					room = min(c.ceiling, m.ample(n, growthParts))
				} else if chunks > 0 {
					room = m.ample(n, growthParts)
				}
				more := m.units(room - m.capacity())
				chunks += (more + m.mostUnits() - 1) / m.mostUnits()
				m.chunks = m.planned(m.units(m.capacity()) + more).chunks
			}
			if n == c.end {
				break
			}
		}
		over := m.capacity() - c.end
		t.Logf("%d to %d splats of %d: %d chunks in units of %d, %d splats stand empty", c.start, c.end, c.ceiling,
			chunks, m.unit, over)
		if most := c.end/growthParts + max(m.growth, m.unit); over < 0 || over > most || c.ceiling == c.end &&
			over >= m.unit {
			t.Errorf("room for %d splats more than there are", over)
		}
		if c.end <= 1_500_000 && chunks > fewChunks {
			t.Errorf("%d chunks for %d splats", chunks, c.end)
		}
	}
}

// TestGrowBy wants large steps where memory is plentiful, and small ones where it may get short.
func TestGrowBy(t *testing.T) {
	for _, c := range []struct {
		budget int64
		exact  bool
		want   int
	}{{1 << 30, true, 1}, {1 << 30, false, fewerParts}, {64 << 20, true, growthParts}, {64 << 20, false, growthParts}} {
		d := budgetDevice(t, c.budget)
		m := must.Get(newModel(d.dev, 3))(t)
		m.setUnit(200_000)
		if err := m.reserve(20_000); err != nil { // 14 MB
			t.Fatal(err)
		}
		got, n := m.growBy(c.exact), m.capacity()
		if more := m.ample(n+1, got) - n; got != c.want || more < n/got || more > max(n/got, m.growth)+2*m.unit {
			t.Errorf("budget %d, exact %v: a step of a part of %d, by %d of %d splats", c.budget, c.exact, got, more, n)
		}
		must.Do(t, m.close())
	}
}

// TestShortages plans in too little memory: the error says how much is enough, and it is, but a tenth less is not.
func TestShortages(t *testing.T) {
	cams := planCameras(20, 1200, 800)
	cfg := recipe.Default()
	plan := func(vram, ram string, splats int) error {
		d, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE"), MaxVRAM: vram, MaxRAM: ram})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		_, err = d.Plan(cams, splats, cfg, TrainerOptions{Pictures: cams[:2], HeldBytes: 1 << 20})
		return err
	}
	for range 3 {
		_ = plan("1GB", "30MB", 2000) // what drivers take grows with the first openings
	}
	for _, c := range []struct {
		vram, ram string
		splats    int
	}{{"", "20MB", 20_000}, {"", "150MB", 20_000}, {"3MB", "", 20_000}, {"1GB", "30MB", 20_000}, {"", "1KB", 2000},
		{"", "150MB", 2000}} {
		err := plan(c.vram, c.ram, c.splats)
		if !errors.Is(err, ErrTooSmall) && !errors.Is(err, ErrLittleRAM) {
			t.Errorf("%+v: got %v", c, err)
			continue
		}
		m := regexp.MustCompile(`raise --max-(vram|ram) to (\d+)MiB or more`).FindStringSubmatch(fault.Hint(err))
		t.Logf("%+v: %v; %s", c, err, fault.Hint(err))
		if m == nil {
			t.Errorf("%+v: the hint is %q", c, fault.Hint(err))
			continue
		}
		with := func(mib int) error {
			text := fmt.Sprintf("%dMiB", mib)
			if m[1] == "vram" {
				return plan(text, c.ram, c.splats)
			}
			return plan(c.vram, text, c.splats)
		}
		enough := must.Get(strconv.Atoi(m[2]))(t)
		if err := with(enough); err != nil {
			t.Errorf("%+v: %d MiB are said to be enough: %v", c, enough, err)
		}
		if err := with(enough - enough/10); err == nil {
			t.Errorf("%+v: %d MiB are said to be needed, a tenth less is enough", c, enough)
		}
	}
}

// TestSplatsShortage asks for more splats at the end than fit: the error says which budget is enough, or that none is.
func TestSplatsShortage(t *testing.T) {
	cams := planCameras(20, 120, 80)
	plan := func(vram string, splats int) error {
		d, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE"), MaxVRAM: vram})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		cfg := recipe.Default()
		cfg.Splats = splats
		_, err = d.Plan(cams, 2000, cfg, TrainerOptions{})
		return err
	}
	err := plan("100MB", 200_000)
	m := regexp.MustCompile(`raise --max-vram to (\d+MiB) or more, .* fewer splats \(--splats\)`).FindStringSubmatch(
		fault.Hint(err))
	if !errors.Is(err, ErrTooSmall) || m == nil {
		t.Fatalf("%v; %s", err, fault.Hint(err))
	}
	if err := plan(m[1], 200_000); err != nil {
		t.Errorf("%s are said to be enough: %v", m[1], err)
	}
	if err := plan("100MB", 1<<31-1); !errors.Is(err, ErrTooSmall) || !strings.Contains(fault.Hint(err),
		"no budget helps") || !strings.Contains(fault.Hint(err), "(--splats)") {
		t.Errorf("%v; %s", err, fault.Hint(err))
	}
}

// TestShortageOfACappedShare keeps more in RAM than the host gets of a pool, however large, where nobody says what the
// device has: the hint names both flags, and they are enough.
func TestShortageOfACappedShare(t *testing.T) {
	cams := planCameras(20, 1200, 800)
	plan := func(vram, ram string) (*Device, error) {
		d, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE"), MaxVRAM: vram, MaxRAM: ram})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		_, err = d.Plan(cams, 20_000, recipe.Default(), TrainerOptions{HeldBytes: 5 << 30})
		return d, err
	}
	d, err := plan("", "5GiB")
	if !unified(d) {
		t.Skip("the device has memory of its own")
	}
	m := regexp.MustCompile(`give --max-vram (\d+MiB) and --max-ram (\d+MiB) or more`).FindStringSubmatch(
		fault.Hint(err))
	if !errors.Is(err, ErrLittleRAM) || m == nil {
		t.Fatalf("%v; %s", err, fault.Hint(err))
	}
	if _, err := plan(m[1], m[2]); err != nil {
		t.Errorf("%s and %s are said to be enough: %v", m[1], m[2], err)
	}
}

// TestRenderShortages draws in too little memory: the error says how much is enough, and it is.
func TestRenderShortages(t *testing.T) {
	cams, _, init, _, _ := peakScene(t)
	draw := func(vram, ram string, kept int64) error {
		d, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE"), MaxVRAM: vram, MaxRAM: ram})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		before := d.dev.Stats().InUse
		r, err := NewRenderer(d, init, cams, RenderConfig{Kept: kept})
		if err != nil {
			if left := d.dev.Stats().InUse - before; left != 0 {
				t.Errorf("%d bytes of a renderer that was not made are left", left)
			}
			return err
		}
		_, err = r.RenderInto(nil, cams[0])
		return errors.Join(err, r.Close())
	}
	for range 3 {
		_ = draw("", "", 0) // what drivers take grows with the first openings
	}
	if err := draw("", "900MB", 0); err != nil {
		t.Errorf("without what the caller keeps: %v", err)
	}
	for _, c := range []struct {
		vram, ram string
		kept      int64
	}{{"1KB", "", 0}, {"4MB", "", 0}, {"", "30MB", 0}, {"", "150MB", 0}, {"50MB", "60MB", 0},
		{"", "900MB", 900 << 20}} {
		err := draw(c.vram, c.ram, c.kept)
		m := regexp.MustCompile(`raise --max-(vram|ram) to (\d+MiB) or more`).FindStringSubmatch(fault.Hint(err))
		t.Logf("%v: %v; %s", c, err, fault.Hint(err))
		if !errors.Is(err, ErrTooSmall) && !errors.Is(err, ErrLittleRAM) || m == nil {
			t.Errorf("%v: got %v; %s", c, err, fault.Hint(err))
			continue
		}
		if m[1] == "vram" {
			c.vram = m[2]
		} else {
			c.ram = m[2]
		}
		if err := draw(c.vram, c.ram, c.kept); err != nil {
			t.Errorf("%v is said to be enough: %v", c, err)
		}
	}
	old := runtime.GOMAXPROCS(8)
	defer runtime.GOMAXPROCS(old)
	w := renderNeeds{fixed: 70 << 20, kept: 30 << 20, picture: 10 << 20}
	for _, c := range []struct {
		ram  int64
		want int
	}{{1, 1}, {withMargin(129 << 20), 2}, {1 << 30, 8 + rendersInFlight}} {
		if got := w.atOnce(c.ram); got != c.want {
			t.Errorf("%d pictures at once in %d bytes, want %d", got, c.ram, c.want)
		}
	}
	for _, packed := range []bool{false, true} {
		alone, with := parts{packed: packed}, parts{packed: packed, beside: 16}
		if with.encodeBytes() != alone.encodeBytes()+16 || with.bytes() != alone.bytes() {
			t.Errorf("what a caller takes beside a picture is not counted once: %d bytes a pixel, %d without",
				with.encodeBytes(), alone.encodeBytes())
		}
	}
}

// TestGrowthWithoutRoom wants a growth that finds no room for all that would be ample to be one chunk of what is
// needed, not what is left in ever smaller ones.
func TestGrowthWithoutRoom(t *testing.T) {
	d := budgetDevice(t, 64<<20)
	s := must.Get(newSetup(d.dev, 3, []scene.Camera{{Width: 16, Height: 16}}, nil))(t)
	e := newEngine(s)
	defer e.close()
	e.setup.model.setUnit(50_000)
	must.Do(t, e.setup.model.reserve(20_000))
	e.setup.model.growth = 1 << 20
	chunks, need := len(e.setup.model.chunks), e.setup.model.capacity()+1
	if _ = e.memory.growModel(need, 1<<30); e.setup.model.capacity() < need || len(e.setup.model.chunks) != chunks+1 {
		t.Errorf("%d chunks of %d splats, before %d for one splat less", len(e.setup.model.chunks),
			e.setup.model.capacity(),
			chunks)
	}
}
