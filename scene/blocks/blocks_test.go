package blocks

import (
	"encoding/json"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/synth"
)

// city is a small capture of the made-up city, without photos.
func city(t *testing.T) (*scene.Capture, []int) {
	t.Helper()
	s := must.Get(synth.New(synth.Options{City: true, Images: 40, Width: 64, Height: 48, Points: 3000}))(t)
	c := &scene.Capture{Cameras: s.Cameras(), Points: s.Points(), Frame: scene.Identity()}
	train, _ := c.Split(8)
	return c, train
}

func sightOf(t *testing.T, c *scene.Capture, train []int) *Sight {
	t.Helper()
	s := must.Get(NewSight(c, train, nil))(t)
	return s
}

// TestCores: every place on the ground, also far away and on the edges, is in the core of one block, and that is within
// its margin.
func TestCores(t *testing.T) {
	c, train := city(t)
	s := sightOf(t, c, train)
	for _, shape := range [][2]int{{1, 1}, {2, 2}, {3, 1}, {1, 4}, {3, 2}} {
		list := must.Get(s.Divide(shape[0], shape[1], 0.2))(t)
		if len(list) != shape[0]*shape[1] {
			t.Fatalf("%v: %d blocks", shape, len(list))
		}
		places := [][2]float64{{1e9, -1e9}, {-1e9, 1e9}, {0, 1e12}, {0, 0}}
		for k := range list {
			for _, corner := range [][2]float64{list[k].Core.Min, list[k].Core.Max} {
				if !math.IsInf(corner[0], 0) && !math.IsInf(corner[1], 0) {
					places = append(places, corner)
				}
			}
		}
		for _, at := range append(places, s.places...) {
			owners := 0
			for k := range list {
				if list[k].Core.Holds(at) {
					owners++
					if !list[k].Margin.Holds(at) {
						t.Errorf("%v: %v is in the core of block %d and not within its margin", shape, at, k)
					}
				}
			}
			if owners != 1 {
				t.Fatalf("%v: %v is in the cores of %d blocks", shape, at, owners)
			}
		}
	}
}

// TestBalance: cuts are made by weight and not by length.
func TestBalance(t *testing.T) {
	var list []weighed
	for i := range 1000 {
		x := float64(i) / 1000
		list = append(list, weighed{[2]float64{x * x * x, math.Mod(x*617, 1)}, 1})
	}
	cores := must.Get(split(list, 4, 2))(t)
	for k, core := range cores {
		n := 0
		for _, w := range list {
			if core.Holds(w.at) {
				n++
			}
		}
		if n < 120 || n > 130 {
			t.Errorf("block %d has %d of 1000, want 125", k, n)
		}
	}
	for i := range list {
		list[i].at = [2]float64{1, 2}
	}
	if _, err := split(list, 2, 1); err == nil {
		t.Error("a single place was cut in two")
	}
}

// TestSight: what a block is trained on.
func TestSight(t *testing.T) {
	c, train := city(t)
	s := sightOf(t, c, train)
	list := must.Get(s.Divide(2, 2, 0.2))(t)
	trained := make([]int, len(c.Cameras))
	for k := range list {
		b := &list[k]
		b.Cameras.Range(func(i uint32) { trained[i]++ })
		inside, outside := 0, 0
		for p, at := range s.places {
			in := b.Margin.Holds(at)
			switch kept := b.Points.Contains(uint32(p)); {
			case in && !kept:
				t.Fatalf("block %d begins without point %d, which is within its margin", k, p)
			case in:
				inside++
			case kept:
				outside++
				if !slices.ContainsFunc(cameras(b), func(i int) bool { return c.Cameras[i].Sees(c.Points[p].Pos) }) {
					t.Fatalf("block %d begins with point %d, which none of its cameras sees", k, p)
				}
			}
		}
		if inside != b.Inside || outside == 0 || outside > (len(c.Points)-inside+thinning-1)/thinning*2 {
			t.Errorf("block %d: %d points inside, said %d; %d outside of %d", k, inside, b.Inside, outside,
				len(c.Points)-inside)
		}
		for i := range c.Cameras {
			if at := s.Ground.At(c.Cameras[i].Center()); list[k].Core.Holds(at) && i%5 == 4 &&
				!b.Cameras.Contains(uint32(i)) {
				t.Errorf("camera %d looks down on block %d, which does not have it", i, k)
			}
		}
		if n := b.Cameras.Count(); n >= len(c.Cameras) || n < len(c.Cameras)/4 {
			t.Errorf("block %d has %d cameras of %d", k, n, len(c.Cameras))
		}
	}
	if slices.Contains(trained, 0) {
		t.Errorf("cameras by how many blocks have them: %v", trained)
	}
	again := must.Get(sightOf(t, c, train).Divide(2, 2, 0.2))(t)
	for k := range list {
		if list[k].Core != again[k].Core || !slices.Equal(list[k].Cameras, again[k].Cameras) ||
			!slices.Equal(list[k].Points, again[k].Points) {
			t.Errorf("block %d is another one the second time", k)
		}
	}
}

// TestHeldOutSight: a capture without the held-out photos is divided into the same blocks.
func TestHeldOutSight(t *testing.T) {
	c, train := city(t)
	list := must.Get(sightOf(t, c, train).Divide(2, 2, 0.2))(t)
	c.HoldOutEvery(8)
	c = c.Training()
	all, _ := c.Split(0)
	without := must.Get(sightOf(t, c, all).Divide(2, 2, 0.2))(t)
	for k := range list {
		if list[k].Core != without[k].Core || list[k].Margin != without[k].Margin ||
			!slices.Equal(list[k].Points, without[k].Points) {
			t.Errorf("block %d: other points or another area without the held-out photos", k)
		}
	}
}

func cameras(b *Block) (ids []int) {
	b.Cameras.Range(func(i uint32) { ids = append(ids, int(i)) })
	return ids
}

// TestGround: up and the longer side, of a flight that is turned any way in the capture's frame, also one that only
// looks down.
func TestGround(t *testing.T) {
	up := geom.Vec([3]float64{0.3, -0.8, 0.4}).Unit()
	along := geom.Vec(geom.Cross(up, [3]float64{0, 0, 1})).Unit()
	across := geom.Cross(up, along)
	var cams []scene.Camera
	for i := range 60 {
		x, y := float64(i%12), float64(i/12)
		turn := 1.0
		if i/12%2 == 1 {
			turn = -1 // the next row is flown back
		}
		down := geom.Scale(up, -1)
		ahead := geom.Scale(along, turn)
		right := geom.Cross(down, geom.Scale(ahead, -1)) // y of a camera is down in its picture: against the flight
		cam := scene.Camera{Width: 64, Height: 48, Fx: 50, Fy: 50, Cx: 32, Cy: 24}
		for k := range 3 {
			cam.R[k], cam.R[3+k], cam.R[6+k] = right[k], -ahead[k], down[k]
		}
		ground := geom.Add(geom.Scale(along, x), geom.Scale(across, y))
		at := geom.Add(ground, geom.Scale(up, 3+0.1*math.Sin(float64(i))))
		for r := range 3 {
			cam.T[r] = -geom.Dot([3]float64(cam.R[3*r:3*r+3]), at)
		}
		cams = append(cams, cam)
	}
	found := must.Get(findUp(cams))(t)
	if geom.Dot(found, up) < 0.999 {
		t.Errorf("up is %v, want %v", found, up)
	}
	g := newGround(cams, up)
	if math.Abs(geom.Dot(g.X, along)) < 0.999 {
		t.Errorf("the longer side lies along %v, want %v", g.X, along)
	}
	if err := g.Check(); err != nil {
		t.Error(err)
	}
	for i := range cams { // cameras in one place, turned every way
		angle := float64(i) / 60 * 2 * math.Pi
		cams[i].R = [9]float64{math.Cos(angle), -math.Sin(angle), 0, math.Sin(angle), math.Cos(angle), 0, 0, 0, 1}
		if i%2 == 1 {
			cams[i].R = [9]float64{-math.Cos(angle), math.Sin(angle), 0, math.Sin(angle), math.Cos(angle), 0, 0, 0, -1}
		}
		cams[i].T = [3]float64{}
	}
	if up, err := findUp(cams); err == nil {
		t.Errorf("cameras turned every way have the up direction %v", up)
	}
}

func TestRectJSON(t *testing.T) {
	in := Rect{[2]float64{math.Inf(-1), 1.25}, [2]float64{3, math.Inf(1)}}
	data := must.Get(json.Marshal(in))(t)
	if want := `{"min":[null,1.25],"max":[3,null]}`; string(data) != want {
		t.Errorf("%s, want %s", data, want)
	}
	var out Rect
	if err := json.Unmarshal(data, &out); err != nil || out != in {
		t.Errorf("%v, %v, want %v", out, err, in)
	}
}

// TestPicture: the picture is there, with every block's colour where its core is.
func TestPicture(t *testing.T) {
	c, train := city(t)
	s := sightOf(t, c, train)
	list := must.Get(s.Divide(2, 2, 0.2))(t)
	path := filepath.Join(t.TempDir(), "plan.png")
	must.Do(t, s.WritePicture(path, list, func(i int) bool { return i%8 == 0 }))
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	img := must.Get(png.Decode(f))(t)
	seen := map[[3]uint32]int{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			r, g, b, _ := img.At(x, y).RGBA()
			seen[[3]uint32{r >> 8, g >> 8, b >> 8}]++
		}
	}
	for k := range list {
		tint := mixed(hues[k], paper, 0.1)
		if n := seen[[3]uint32{uint32(tint.R), uint32(tint.G), uint32(tint.B)}]; n < 10000 {
			t.Errorf("block %d fills %d pixels", k, n)
		}
	}
	if seen[[3]uint32{uint32(aside.R), uint32(aside.G), uint32(aside.B)}] < 5*29 {
		t.Error("the held-out cameras are not in the picture")
	}
}
