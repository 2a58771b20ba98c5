package pairs

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// madePhotos makes up photos of n places along a loop. Each shows features of its place and of the next ones, and
// features of its own.
func madePhotos(n int) []Photo {
	r := rand.New(rand.NewPCG(1, 2))
	feature := func() []byte {
		f := make([]byte, dims)
		for i := range f {
			f[i] = byte(100 * r.Float64() * r.Float64() * r.Float64())
		}
		return f
	}
	scene := make([][]byte, 40*n)
	for i := range scene {
		scene[i] = feature()
	}
	photos := make([]Photo, n)
	for i := range photos {
		photos[i].Name = fmt.Sprintf("frame%d.jpg", i+1)
		for k := range 160 {
			f := slices.Clone(scene[(40*i+k)%len(scene)])
			f[r.IntN(dims)] += byte(r.IntN(30))
			photos[i].Descriptors = append(photos[i].Descriptors, f...)
		}
		for range 40 {
			photos[i].Descriptors = append(photos[i].Descriptors, feature()...)
		}
	}
	return photos
}

// apart returns how far two photos of the loop are from each other.
func apart(p [2]int, n int) int { return min(p[1]-p[0], n-p[1]+p[0]) }

func TestAll(t *testing.T) {
	got := Choose(make([]Photo, 4), Options{All: 4})
	if want := [][2]int{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Choose(nil, Defaults); len(got) != 0 {
		t.Errorf("pairs of no photos: %v", got)
	}
}

// TestInOrder wants the photos of the window behind each photo, then doubled distances, by the order of names.
func TestInOrder(t *testing.T) {
	var photos []Photo
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(40) {
		photos = append(photos, Photo{Sequence: "a", Name: fmt.Sprint(i, ".jpg")})
	}
	photos = append(photos, Photo{Sequence: "b", Name: "3.jpg"}, Photo{Name: "5.jpg"})
	distances := map[int]int{}
	for _, p := range Choose(photos, Options{Window: 3, Loops: 9, Similar: 9}) {
		if p[1] >= 40 {
			t.Fatalf("pair %v is of no sequence", p)
		}
		var a, b int
		fmt.Sscan(photos[p[0]].Name, &a)
		fmt.Sscan(photos[p[1]].Name, &b)
		distances[max(a-b, b-a)]++
	}
	for _, d := range []int{1, 2, 3, 6, 12, 24} {
		if distances[d] != 40-d {
			t.Errorf("%d pairs of distance %d, want %d", distances[d], d, 40-d)
		}
		delete(distances, d)
	}
	if len(distances) > 0 {
		t.Errorf("other distances: %v", distances)
	}
}

func TestNearby(t *testing.T) {
	photos := make([]Photo, 50)
	for i := range photos {
		photos[i] = Photo{Located: i != 7, East: float64(i % 10 * 20), North: float64(i / 10 * 30)}
	}
	photos[7].East, photos[7].North = 0, 0
	pairs := Choose(photos, Options{Near: 4})
	of := map[int]int{}
	for _, p := range pairs {
		a, b := &photos[p[0]], &photos[p[1]]
		if max(a.East-b.East, b.East-a.East) > 60 || b.North-a.North > 60 {
			t.Errorf("pair %v is of distant photos", p)
		}
		of[p[0]]++
		of[p[1]]++
	}
	for i := range photos {
		if of[i] < 4 && i != 7 || i == 7 && of[i] > 0 {
			t.Errorf("photo %d has %d pairs", i, of[i])
		}
	}
}

// TestSimilar wants photos that show the same, whatever the number of cores, and none of photos without features.
func TestSimilar(t *testing.T) {
	const n = 60
	photos := madePhotos(n)
	photos[20].Descriptors = nil
	o := Options{Similar: 4, Seed: 5}
	got := Choose(photos, o)
	right := 0
	for _, p := range got {
		if apart(p, n) <= 3 {
			right++
		}
		if p[0] == 20 || p[1] == 20 {
			t.Errorf("pair %v has no features", p)
		}
	}
	if len(got) < 110 || right < len(got)*85/100 {
		t.Errorf("%d of %d pairs are of photos that share features", right, len(got))
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if !slices.Equal(Choose(photos, o), got) {
		t.Error("one core chooses other pairs")
	}
}

// TestLoops wants a sequence that comes back to where it began to be closed.
func TestLoops(t *testing.T) {
	const n = 60
	photos := madePhotos(n)
	for i := range photos {
		photos[i].Sequence = "video"
	}
	closed, loops := 0, 0
	without := Choose(photos, Options{Window: 3})
	for _, p := range Choose(photos, Options{Window: 3, Loops: 2}) {
		if slices.Contains(without, p) {
			continue
		}
		if loops++; p[1]-p[0] < 12 {
			t.Errorf("pair %v is no loop", p)
		}
		if p[1]-p[0] > n-4 {
			closed++
		}
	}
	if closed < 5 || loops > 2*n {
		t.Errorf("%d pairs of %d close the loop", closed, loops)
	}
}

func TestPromising(t *testing.T) {
	pairs := [][2]int{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}
	got := Promising(pairs, []int{9, 0, 1, 2, 0, 0}, Options{Enough: 5, Few: 1})
	if want := [][2]int{{0, 1}, {0, 3}, {1, 2}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// BenchmarkChoose has the photos of a long video.
func BenchmarkChoose(b *testing.B) {
	photos := madePhotos(400)
	for b.Loop() {
		Choose(photos, Options{Window: 10, Loops: 5})
	}
}
