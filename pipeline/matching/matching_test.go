package matching

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/failure"
	"vksplat/pipeline/ref"
	"vksplat/vk"
	"vksplat/vk/vktest"
)

// madePhotos makes up photos of a scene of points: a photo sees some of them, each with a little noise, and features of
// its own. Some features occur twice.
func madePhotos(seed uint64, features ...int) (photos []Photo) {
	r := rand.New(rand.NewPCG(seed, 0))
	scene := make([][]float64, slices.Max(features)+1)
	for i := range scene {
		scene[i] = make([]float64, descriptorBytes)
		for k := range scene[i] {
			scene[i][k] = r.Float64() * r.Float64()
		}
	}
	for _, n := range features {
		var p Photo
		order := r.Perm(len(scene))
		for i := range n {
			d := make([]float64, descriptorBytes)
			sum := 0.0
			for k := range d {
				d[k] = max(0, scene[order[i]][k]+0.2*r.Float64()*float64(i%3))
				sum += d[k]
			}
			for k := range d {
				p.Descriptors = append(p.Descriptors, byte(math.Round(512*math.Sqrt(d[k]/sum))))
			}
			if i%17 == 16 { // a tie
				copy(p.Descriptors[i*descriptorBytes:], p.Descriptors[(i-9)*descriptorBytes:][:descriptorBytes])
			}
			p.Places = append(p.Places, [2]float32{float32(1000 * r.Float64()), float32(800 * r.Float64())})
		}
		photos = append(photos, p)
	}
	return photos
}

func allPairs(n int) (pairs [][2]int) {
	for i := range n {
		for j := range i {
			pairs = append(pairs, [2]int{j, i})
		}
	}
	return pairs
}

// oneWay returns the match of each feature of a among those of b, the shortest way, or -1.
func oneWay(a, b []byte, counts func(i, j int) bool) []int {
	best := make([]int, len(a)/descriptorBytes)
	for i := range best {
		best[i] = -1
		most, second := 0, 0
		for j := range len(b) / descriptorBytes {
			product := 0
			for k := range descriptorBytes {
				product += int(a[i*descriptorBytes+k]) * int(b[j*descriptorBytes+k])
			}
			if !counts(i, j) {
				product = 0
			}
			if product > most {
				best[i], most, second = j, product, most
			} else {
				second = max(second, product)
			}
		}
		angle := func(product int) float64 { return math.Acos(min(1, float64(product)/(512*512))) }
		if angle(most) > 0.7 || angle(most) >= 0.8*angle(second) {
			best[i] = -1
		}
	}
	return best
}

func wantMatches(a, b *Photo, counts func(i, j int) bool) (matches [][2]int32) {
	there := oneWay(a.Descriptors, b.Descriptors, counts)
	back := oneWay(b.Descriptors, a.Descriptors, func(j, i int) bool { return counts(i, j) })
	for i, j := range there {
		if j >= 0 && back[j] == i {
			matches = append(matches, [2]int32{int32(i), int32(j)})
		}
	}
	return matches
}

func newMatcher(t testing.TB, d *vk.Device, photos []Photo, o Options) *Matcher {
	t.Helper()
	m := must.Get(New(d, photos, o))(t)
	t.Cleanup(func() { must.Do(t, m.Close()) })
	return m
}

func matchesOf(t testing.TB, m *Matcher, pairs [][2]int, guides []Guide) (found [][][2]int32) {
	t.Helper()
	must.Do(t, m.Match(t.Context(), pairs, guides, func(pair int, matches [][2]int32) error {
		if pair != len(found) {
			return fmt.Errorf("pair %d comes after %d pairs", pair, len(found))
		}
		found = append(found, matches)
		return nil
	}))
	if len(found) != len(pairs) {
		t.Fatalf("%d pairs of %d", len(found), len(pairs))
	}
	return found
}

func sameMatches(t *testing.T, what string, got, want [][][2]int32) {
	t.Helper()
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("%s: pair %d has %d matches, want %d", what, i, len(got[i]), len(want[i]))
		}
	}
}

// TestMatch compares matches with those that are found the shortest way, for both kernels.
func TestMatch(t *testing.T) {
	d := vktest.Device(t)
	photos, pairs := madePhotos(1, 300, 128, 0, 129, 1), allPairs(5)
	var want [][][2]int32
	n := 0
	for _, p := range pairs {
		want = append(want, wantMatches(&photos[p[0]], &photos[p[1]], func(i, j int) bool { return true }))
		n += len(want[len(want)-1])
	}
	if n < 50 || n > 500 {
		t.Errorf("%d matches", n)
	}
	m := newMatcher(t, d, photos, Options{})
	m.packed = false
	sameMatches(t, "floats", matchesOf(t, m, pairs, nil), want)
	if d.Info().Features.PackedDot {
		m := newMatcher(t, d, photos, Options{})
		m.packed = true
		sameMatches(t, "packed", matchesOf(t, m, pairs, nil), want)
	}
}

// TestBatches wants the same matches, in the order of the pairs, whatever the memory and the size of batches.
func TestBatches(t *testing.T) {
	d := vktest.Device(t)
	photos := madePhotos(2, 130, 200, 90, 256, 140, 70, 129)
	pairs := allPairs(len(photos))
	rand.New(rand.NewPCG(3, 0)).Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	want := matchesOf(t, newMatcher(t, d, photos, Options{}), pairs, nil)
	bytes := func(slots int64) int64 { return (4*productOfOne+slots*slotBytes(2))*4/3 + 1 }
	for _, slots := range []int64{2, 3} {
		m := newMatcher(t, d, photos, Options{MaxBytes: bytes(slots)})
		if n := int64(len(m.store.slots)); n != slots {
			t.Errorf("%d slots, want %d", n, slots)
		}
		for range 2 {
			sameMatches(t, fmt.Sprint(slots, " slots"), matchesOf(t, m, pairs, nil), want)
		}
	}
	m := newMatcher(t, d, photos, Options{})
	m.size = 1
	sameMatches(t, "small batches", matchesOf(t, m, pairs, nil), want)
	if _, err := New(d, photos, Options{MaxBytes: bytes(2) - 2*keyBytes}); !errors.Is(err, failure.ErrTooSmall) {
		t.Errorf("little memory: %v", err)
	}
}

// TestGuided wants matches among those that agree with the guide alone.
func TestGuided(t *testing.T) {
	d := vktest.Device(t)
	photos := madePhotos(4, 250, 180)
	guides := []Guide{
		{Matrix: [9]float64{1e-6, 2e-4, -0.1, -3e-4, 2e-6, 0.2, 0.12, -0.21, 1}, Pixels: 300},
		{Planar: true, Matrix: [9]float64{2.04, 0.06, 10, -0.06, 1.96, -14, 2e-6, -4e-6, 2}, Pixels: 500},
		{},
	}
	pairs := [][2]int{{0, 1}, {1, 0}, {0, 1}}
	m := newMatcher(t, d, photos, Options{})
	got, free := matchesOf(t, m, pairs, guides), matchesOf(t, m, pairs, nil)
	for i, p := range pairs[:2] {
		j, ok := m.job(&request{pairs: pairs, guides: guides, tiles: 99}, i)
		if !ok {
			t.Fatal("no room")
		}
		a, b := &photos[p[0]], &photos[p[1]]
		want := wantMatches(a, b, func(i, k int) bool { return ref.MatchAgrees(&j, a.Places[i], b.Places[k]) })
		if !slices.Equal(got[i], want) || slices.Equal(got[i], free[i]) || len(want) < 10 {
			t.Errorf("guide %d: %d matches, want %d, without it %d", i, len(got[i]), len(want), len(free[i]))
		}
	}
	if len(got[2]) != 0 {
		t.Errorf("a guide of zeros: %d matches", len(got[2]))
	}
}

// TestAgrees compares the guides' distances with their definitions.
func TestAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 0))
	m := &Matcher{store: &store{slotOf: []int{0, 1}, slots: []holder{{photo: 0}, {photo: 1}}}, photos: make([]Photo, 2)}
	agree := 0
	const trials = 2000
	for range trials {
		g := Guide{Planar: r.IntN(2) == 0, Pixels: 80}
		for k := range g.Matrix {
			g.Matrix[k] = []float64{1e-3, 1e-3, 1}[k%3] * []float64{1e-3, 1e-3, 1}[k/3] * r.NormFloat64()
		}
		if g.Planar {
			g.Matrix = [9]float64{1, 0.1 * r.NormFloat64(), 0, 0, 1, 30 * r.NormFloat64(), 1e-4, 0, 1}
		}
		a, b := [2]float64{1000 * r.Float64(), 800 * r.Float64()}, [2]float64{1000 * r.Float64(), 800 * r.Float64()}
		if g.Planar {
			b = [2]float64{a[0] + 60*r.NormFloat64(), a[1] + 60*r.NormFloat64()}
		}
		times := func(p [2]float64, step, next int) (v [3]float64) {
			for k := range v {
				v[k] = g.Matrix[step*k]*p[0] + g.Matrix[step*k+next]*p[1] + g.Matrix[step*k+2*next]
			}
			return v
		}
		l, back := times(a, 3, 1), times(b, 1, 3)
		distance := math.Abs(l[0]*b[0]+l[1]*b[1]+l[2]) /
			math.Hypot(math.Hypot(l[0], l[1]), math.Hypot(back[0], back[1]))
		if g.Planar {
			distance = math.Hypot(l[0]/l[2]-b[0], l[1]/l[2]-b[1])
		}
		j, _ := m.job(&request{pairs: [][2]int{{0, 1}}, guides: []Guide{g}}, 0)
		got := ref.MatchAgrees(&j, [2]float32{float32(a[0]), float32(a[1])}, [2]float32{float32(b[0]), float32(b[1])})
		if got != (distance <= g.Pixels) && math.Abs(distance-g.Pixels) > 0.01 {
			t.Errorf("%+v: %g pixels, agrees %t", g, distance, got)
		}
		if got {
			agree++
		}
	}
	if agree < trials/10 || agree > trials*9/10 {
		t.Errorf("%d of %d agree", agree, trials)
	}
}

// TestScore wants the matches of the first features of each photo, counted.
func TestScore(t *testing.T) {
	d := vktest.Device(t)
	photos, pairs := madePhotos(6, 300, 280, 60), allPairs(3)
	head := func(p Photo) *Photo {
		return &Photo{Descriptors: p.Descriptors[:min(len(p.Descriptors), 128*descriptorBytes)]}
	}
	got := must.Get(newMatcher(t, d, photos, Options{}).Score(t.Context(), pairs, 200))(t)
	for i, p := range pairs {
		want := len(wantMatches(head(photos[p[0]]), head(photos[p[1]]), func(i, j int) bool { return true }))
		if got[i] != want || want == 0 {
			t.Errorf("pair %d: score %d, want %d", i, got[i], want)
		}
	}
}

// TestLeastProducts compares the table with the angles that it stands for.
func TestLeastProducts(t *testing.T) {
	least := leastProducts()
	angle := func(product uint32) float64 { return math.Acos(float64(product) / productOfOne) }
	for second := uint32(0); second < productOfOne; second += 37 {
		for _, p := range []uint32{least[second] - 1, least[second]} {
			matches := angle(p) <= 0.7 && angle(p) < 0.8*angle(second)
			if matches != (p >= least[second]) {
				t.Errorf("largest %d, second %d: %t", p, second, matches)
			}
		}
	}
}

// TestStops wants errors and cancelled contexts to end matching, and matching to work afterwards.
func TestStops(t *testing.T) {
	d := vktest.Device(t)
	photos, pairs := madePhotos(7, 130, 140, 150, 160), allPairs(4)
	m := newMatcher(t, d, photos, Options{})
	want := matchesOf(t, m, pairs, nil)
	m.size = 1
	wrong, n := errors.New("wrong"), 0
	err := m.Match(t.Context(), pairs, nil, func(int, [][2]int32) error { n++; return wrong })
	if !errors.Is(err, wrong) || n != 1 {
		t.Errorf("%v after %d calls", err, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = m.Match(ctx, pairs, nil, func(int, [][2]int32) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	sameMatches(t, "afterwards", matchesOf(t, m, pairs, nil), want)
	if m.Match(t.Context(), pairs, make([]Guide, 1), nil) == nil {
		t.Error("a guide of six pairs is accepted")
	}
	for _, p := range []Photo{{Descriptors: make([]byte, 5)},
		{Descriptors: make([]byte, 128), Places: make([][2]float32, 2)},
		{Descriptors: bytes.Repeat([]byte{1}, (MostFeatures+1)*descriptorBytes)}} {
		if _, err := New(d, []Photo{p}, Options{}); err == nil {
			t.Errorf("%d bytes with %d places are accepted", len(p.Descriptors), len(p.Places))
		}
	}
}

var photosFlag, featuresFlag = flag.Int("photos", 4, "of the benchmark"), flag.Int("features", 1024, "of each photo")

// BenchmarkMatch matches all pairs of photos, and reports the multiplications and additions a second.
func BenchmarkMatch(b *testing.B) {
	d := vktest.Device(b)
	photos := madePhotos(8, slices.Repeat([]int{*featuresFlag}, *photosFlag)...)
	pairs := allPairs(len(photos))
	guides := slices.Repeat([]Guide{{Matrix: [9]float64{0, 0, 0, 0, 0, -1, 0, 1, 0}, Pixels: 4}}, len(pairs))
	nothing := func(int, [][2]int32) error { return nil }
	for _, packed := range []bool{false, true} {
		if packed && !d.Info().Features.PackedDot {
			continue
		}
		m := newMatcher(b, d, photos, Options{})
		m.packed = packed
		for name, guides := range map[string][]Guide{"all": nil, "guided": guides} {
			b.Run(fmt.Sprintf("packed=%t/%s", packed, name), func(b *testing.B) {
				for b.Loop() {
					must.Do(b, m.Match(b.Context(), pairs, guides, nothing))
				}
				products := float64(len(pairs)) * float64(*featuresFlag) * float64(*featuresFlag) * descriptorBytes
				b.ReportMetric(products*float64(b.N)/b.Elapsed().Seconds()/1e12, "Tmuladd/s")
			})
		}
		b.Run(fmt.Sprintf("packed=%t/score", packed), func(b *testing.B) {
			for b.Loop() {
				must.Get(m.Score(b.Context(), pairs, 256))(b)
			}
		})
	}
}

// TestLoad matches photos whose descriptors are read when they are needed, and ends with the error of reading.
func TestLoad(t *testing.T) {
	d := vktest.Device(t)
	photos := madePhotos(3, 300, 200, 250)
	pairs := allPairs(3)
	want := matchesOf(t, newMatcher(t, d, photos, Options{}), pairs, nil)
	loaded, broken := make([]Photo, 3), errors.New("the disk is gone")
	for i := range photos {
		list := photos[i].Descriptors
		loaded[i] = Photo{Features: len(list) / descriptorBytes, Load: func() ([]byte, error) { return list, nil }}
	}
	sameMatches(t, "read", matchesOf(t, newMatcher(t, d, loaded, Options{}), pairs, nil), want)
	for _, load := range []func() ([]byte, error){func() ([]byte, error) { return nil, broken },
		func() ([]byte, error) { return make([]byte, 5), nil }} {
		loaded[1].Load = load
		m := newMatcher(t, d, loaded, Options{})
		if m.Match(t.Context(), pairs, nil, func(int, [][2]int32) error { return nil }) == nil {
			t.Error("what cannot be read is matched")
		}
	}
}
