package pipeline

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/picture"
)

// fakeParts is a model in parts of a size, in two levels: the splats themselves, and every other one of them. Views of
// which it is said that they are far show the second.
type fakeParts struct {
	s     *scene.Splats
	size  int
	far   func(c *scene.Camera, part int) bool
	empty bool // the first view shows nothing
	fails int  // the part that cannot be read; 0: none
	ahead int  // parts that were asked for ahead of time
	read  int

	least, limit int64 // bytes of RAM that it takes, and that it may take
}

var errUnread = errors.New("the disk is gone")

func (f *fakeParts) n() int      { return (f.s.N + f.size - 1) / f.size }
func (f *fakeParts) Degree() int { return f.s.Degree }

func (f *fakeParts) ids(part int) (list []int) {
	every := 1 + part/f.n()
	for i := part % f.n() * f.size; i < min(f.s.N, (part%f.n()+1)*f.size); i += every {
		list = append(list, i)
	}
	return list
}

func (f *fakeParts) Sizes() (list []int) {
	for part := range 2 * f.n() {
		list = append(list, len(f.ids(part)))
	}
	return list
}

func (f *fakeParts) Choose(c *scene.Camera, most int) (list []int, err error) {
	if f.empty && c.Name == "empty" {
		return nil, nil
	}
	n := 0
	for part := range f.n() {
		if f.far(c, part) {
			part += f.n()
		}
		list, n = append(list, part), n+pagesOf(len(f.ids(part)))*PageSplats
	}
	if n > most {
		return nil, fault.Usagef("draw fewer", "%d splats of %d at most", n, most)
	}
	return list, nil
}

func (f *fakeParts) LeastRAM() int64      { return f.least }
func (f *fakeParts) LimitRAM(bytes int64) { f.limit = bytes }

func (f *fakeParts) Ahead(parts []int) { f.ahead += len(parts) }

func (f *fakeParts) Read(part int) (*scene.Splats, error) {
	if f.read++; f.fails > 0 && part == f.fails {
		return nil, errUnread
	}
	return f.s.Take(f.ids(part)), nil
}

// drawParts makes pictures of the cameras in an order, and returns them in that of the cameras.
func drawParts(t *testing.T, o DeviceOptions, m Parts, most int, cams []scene.Camera, order []int, expect bool,
	cfg RenderConfig) []*picture.Picture {
	t.Helper()
	d, err := OpenDevice(o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := NewPartsRenderer(d, m, most, cams, cfg)
	if err != nil {
		t.Fatal(err, fault.Hint(err))
	}
	defer r.Close()
	pictures := make([]*picture.Picture, len(cams))
	for _, i := range order {
		if expect {
			r.Expect(cams[i])
		}
	}
	calls := 0
	for k, i := range order {
		pictures[i] = &picture.Picture{}
		if err := r.Add(cams[i], pictures[i], func() {}); err != nil {
			t.Fatal(err, fault.Hint(err))
		}
		if k == len(order)/2 {
			must.Do(t, r.Drain())
			calls = d.dev.Stats().AllocCalls
		}
	}
	must.Do(t, r.Drain())
	if n := d.dev.Stats().AllocCalls; n != calls && o.MaxVRAM == "" {
		t.Errorf("%d allocations after the first pictures", n-calls)
	}
	return pictures
}

// TestParts draws a model in parts: with the bytes that the same splats have as a whole, whatever room there is and in
// whatever order pictures come.
func TestParts(t *testing.T) {
	s, cams := renderViews(t)
	cams = append(cams, cams...)
	near := func(*scene.Camera, int) bool { return false }
	cfg := RenderConfig{Packed: true, Depth: true, Background: [3]float32{0.2, 0.4, 0.6}}
	whole, _ := drawAll(t, DeviceOptions{}, s, cams, cfg)
	forth := make([]int, len(cams))
	for i := range forth {
		forth[i] = i
	}
	back := slices.Clone(forth)
	slices.Reverse(back)
	got := drawParts(t, DeviceOptions{}, &fakeParts{s: s, size: 70, far: near}, 2*s.N, cams, forth, false, cfg)
	samePictures(t, "the finest level", got, whole)

	// Views show parts in turns, so that what one leaves on the device is in the way of the next.
	m := &fakeParts{s: s, size: 70, far: func(c *scene.Camera, part int) bool { return (c.Width+part)%3 > 0 }}
	most := 0
	for _, n := range m.Sizes()[:m.n()] {
		most += pagesOf(n) * PageSplats
	}
	want := drawParts(t, DeviceOptions{}, m, 2*most, cams, forth, false, cfg)
	for name, f := range map[string]func() []*picture.Picture{
		"backwards": func() []*picture.Picture { return drawParts(t, DeviceOptions{}, m, most, cams, back, true, cfg) },
		"little room": func() []*picture.Picture {
			return drawParts(t, DeviceOptions{MaxVRAM: "24MiB"}, m, most, cams, back, true, cfg)
		},
		"many buffers": func() []*picture.Picture {
			limits := filepath.Join(t.TempDir(), "limits.json")
			must.Do(t, os.WriteFile(limits, []byte(`{"maxStorageBufferRange": 262144}`), 0o600))
			t.Setenv("VKSPLAT_LIMITS", limits)
			defer os.Unsetenv("VKSPLAT_LIMITS")
			return drawParts(t, DeviceOptions{}, m, most, cams, back, true, cfg)
		},
		"in bands": func() []*picture.Picture {
			inBands(t, 5)
			return drawParts(t, DeviceOptions{}, m, most, cams, forth, true, cfg)
		},
	} {
		samePictures(t, name, f(), want)
	}
	if m.ahead == 0 {
		t.Error("nothing was asked for ahead of time")
	}
}

// TestPartsEvicted gives the device room for one picture's parts alone, and starts with room for too few pairs.
func TestPartsEvicted(t *testing.T) {
	s, cams := renderViews(t)
	m := &fakeParts{s: s, size: 70, far: func(c *scene.Camera, part int) bool { return (c.Width+part)%3 > 0 }}
	cfg := RenderConfig{Packed: true}
	most := 0
	for _, n := range m.Sizes()[:m.n()] {
		most += pagesOf(n) * PageSplats
	}
	draw := func(pages int) []*picture.Picture {
		d := testDevice(t)
		p := must.Get(newRenderPlan(d, m.Degree(), cams, cfg))(t)
		w := must.Get(p.pagedNeeds(pages, most))(t)
		r := must.Get(p.newPaged(m, pages, most, w))(t)
		defer r.Close()
		r.e.setup.isectCapacity = 256
		must.Do(t, r.e.programs.free())
		must.Do(t, r.e.programs.build())
		out := make([]*picture.Picture, len(cams))
		for i, c := range cams {
			out[i] = &picture.Picture{}
			must.Do(t, r.Add(c, out[i], func() {}))
		}
		must.Do(t, r.Drain())
		if least, most := r.Shown(); least == 0 || most < least || most > s.N {
			t.Errorf("%d to %d splats drawn of %d", least, most, s.N)
		}
		return out
	}
	want := draw(4 * most / PageSplats)
	m.read = 0
	samePictures(t, "room for one picture", draw(most/PageSplats), want)
	if m.read <= m.n() {
		t.Errorf("%d parts were read, %d are shown: none was evicted", m.read, m.n())
	}
}

// TestPartsTooMany refuses what no memory holds.
func TestPartsTooMany(t *testing.T) {
	s, cams := renderViews(t)
	m := &fakeParts{s: s, size: 70, far: func(*scene.Camera, int) bool { return false }}
	d := ownDevice(t)
	d.SetBudget(8 << 20)
	_, err := NewPartsRenderer(d, m, math.MaxInt32, cams, RenderConfig{})
	if !IsShortage(err) || fault.Hint(err) == "" {
		t.Errorf("error %v", err)
	}
}

// TestPartsShortages draws in too little memory, as many splats as are asked for or as there is room for: the error
// says how much is enough, and it is. Reading ahead of time takes what is left and keeps no picture from being drawn.
func TestPartsShortages(t *testing.T) {
	s, cams := renderViews(t)
	m := &fakeParts{s: s, size: 70, far: func(*scene.Camera, int) bool { return false }, least: 10 << 20}
	draw := func(vram, ram string, most int) error {
		d, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE"), MaxVRAM: vram, MaxRAM: ram})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if most == 0 {
			most = d.MostShown(m, cams, RenderConfig{})
		}
		m.limit = 0
		r, err := NewPartsRenderer(d, m, most, cams, RenderConfig{})
		if err != nil {
			return err
		}
		if m.limit < m.least || m.limit > max(m.least, d.host/3) {
			t.Errorf("%d bytes for parts of %d of RAM", m.limit, d.host)
		}
		return r.Close()
	}
	for range 3 {
		_ = draw("", "", 0) // what drivers take grows with the first openings
	}
	for _, c := range []struct {
		vram, ram string
		most      int
	}{{"1KB", "", 0}, {"4MB", "", 0}, {"4MB", "", 1 << 20}, {"", "30MB", 0}, {"", "100MB", 0}, {"", "150MB", 0},
		{"", "150MB", 1 << 20}, {"", "250MB", 3 << 20}, {"50MB", "60MB", 0}} {
		err := draw(c.vram, c.ram, c.most)
		if err == nil && (c.vram == "4MB" && c.most == 0 || c.vram == "" && c.ram != "30MB") {
			continue // drivers differ in what they take
		}
		t.Logf("%v: %v; %s", c, err, fault.Hint(err))
		more := regexp.MustCompile(`(max-vram|max-ram) to (\d+MiB)`).FindAllStringSubmatch(fault.Hint(err), -1)
		if !errors.Is(err, ErrTooSmall) && !errors.Is(err, ErrLittleRAM) || more == nil {
			t.Errorf("%v: got %v; %s", c, err, fault.Hint(err))
			continue
		}
		if c.vram == "" && strings.Contains(err.Error(), "there are 1 B") {
			t.Errorf("%v: %v", c, err)
		}
		for _, found := range more {
			if found[1] == "max-vram" {
				c.vram = found[2]
			} else {
				c.ram = found[2]
			}
		}
		if err := draw(c.vram, c.ram, c.most); err != nil {
			t.Errorf("%v is said to be enough: %v; %s", c, err, fault.Hint(err))
		}
	}
}

// TestPartsEmpty draws a picture that shows no part between others.
func TestPartsEmpty(t *testing.T) {
	s, cams := renderViews(t)
	near := func(*scene.Camera, int) bool { return false }
	cfg := RenderConfig{Packed: true, Background: [3]float32{0.2, 0.4, 0.6}}
	order := []int{0, 1, 2}
	want := drawParts(t, DeviceOptions{}, &fakeParts{s: s, size: 70, far: near}, 2*s.N, cams[:3], order, true, cfg)
	cams[1].Name = "empty"
	m := &fakeParts{s: s, size: 70, far: near, empty: true}
	got := drawParts(t, DeviceOptions{}, m, 2*s.N, cams[:3], order, true, cfg)
	for i := 4; i < len(got[1].Pix); i++ {
		if got[1].Pix[i] != got[1].Pix[i%4] {
			t.Fatal("a picture of nothing is not of one colour")
		}
	}
	want[1] = got[1]
	samePictures(t, "beside an empty one", got, want)
}

// TestPartsFail wants a picture that cannot be drawn to be an error of its own: where it shows too much, which those
// before it survive, and where a part of it cannot be read.
func TestPartsFail(t *testing.T) {
	s, cams := renderViews(t)
	for i := range cams {
		cams[i].Name = fmt.Sprintf("view %d", i)
	}
	// All views are far but the last one, and the last fine part is read for no other.
	last := cams[len(cams)-1].Name
	m := &fakeParts{s: s, size: 140, far: func(c *scene.Camera, _ int) bool { return c.Name != last }}
	coarse, fine := 0, 0
	for part, n := range m.Sizes() {
		if n = pagesOf(n) * PageSplats; part < m.n() {
			fine += n
		} else {
			coarse += n
		}
	}
	for _, most := range []int{coarse, fine} {
		if most == fine {
			m.fails = m.n() - 1
		}
		r, err := NewPartsRenderer(testDevice(t), m, most, cams, RenderConfig{Packed: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cams {
			r.Expect(c)
		}
		done := 0
		for i, c := range cams {
			if err = r.Add(c, &picture.Picture{}, func() { done++ }); err != nil && i < len(cams)-1 {
				t.Fatal(err)
			}
		}
		if err == nil || most == fine && !errors.Is(err, errUnread) ||
			most == coarse && (done != len(cams)-1 || !strings.Contains(err.Error(), last) || fault.Hint(err) == "") {
			t.Errorf("%d pictures are drawn, error %v", done, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPages takes pages and gives them back in any order: none is given twice, and none is lost.
func TestPages(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	m := &pages{n: 1000, left: []pageRun{{0, 1000}}}
	owner := make([]int, m.n)
	held := map[int][]pageRun{}
	for i := 1; i < 5000; i++ {
		if n := 1 + random.IntN(60); n <= m.unused() && random.IntN(2) == 0 {
			held[i] = m.acquire(n)
			for _, r := range held[i] {
				for page := r.first; page < r.first+r.n; page++ {
					if owner[page] != 0 {
						t.Fatalf("page %d is %d's", page, owner[page])
					}
					owner[page], n = i, n-1
				}
			}
			if n != 0 {
				t.Fatalf("%d pages too few", n)
			}
			continue
		}
		for k, runs := range held { // any
			for _, r := range runs {
				clear(owner[r.first : r.first+r.n])
			}
			m.release(runs)
			delete(held, k)
			break
		}
		for k := 1; k < len(m.left); k++ {
			if m.left[k-1].first+m.left[k-1].n >= m.left[k].first {
				t.Fatal(fmt.Sprint("free runs ", m.left))
			}
		}
	}
	for _, runs := range held {
		m.release(runs)
	}
	if !slices.Equal(m.left, []pageRun{{0, 1000}}) {
		t.Errorf("left: %v", m.left)
	}
}
