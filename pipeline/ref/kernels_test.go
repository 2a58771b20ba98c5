package ref

import (
	"math"
	"slices"
	"testing"
)

func TestScanAndSorts(t *testing.T) {
	if offsets, total := Scan([]uint32{3, 0, 2, 5}); !slices.Equal(offsets, []uint32{0, 3, 3, 5}) || total != 10 {
		t.Errorf("scan: %v, %d", offsets, total)
	}
	a, b, near, far := math.Float32bits(1), math.Float32bits(1.00001), math.Float32bits(1e-9), math.Float32bits(1e20)
	keys := []uint32{b, Culled, a + 1, b, a, far, math.Float32bits(math.MaxFloat32), near + 1, near}
	if got := SortDepth(keys); !slices.Equal(got, []uint32{7, 8, 2, 4, 0, 3, 5, 6}) {
		t.Errorf("sort depth: %v", got)
	}
	tiles := []uint32{2, 0, 2, 1, 0}
	if got := SortTiles(tiles); !slices.Equal(got, []uint32{1, 4, 3, 0, 2}) {
		t.Errorf("sort tiles: %v", got)
	}
	if got := TileOffsets(tiles, 4); !slices.Equal(got, []uint32{0, 2, 3, 5, 5}) {
		t.Errorf("tile offsets: %v", got)
	}
	if got := TileOffsets(nil, 2); !slices.Equal(got, []uint32{0, 0, 0}) {
		t.Errorf("tile offsets of nothing: %v", got)
	}
}

// TestPoison puts each bad number into each parameter: the splat is culled or drawn, but nothing that is not a number
// comes out.
func TestPoison(t *testing.T) {
	bad := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32,
		-math.MaxFloat32, 1e-42, 0, 88, -88, 200, -200}
	for _, fisheye := range []bool{false, true} {
		v := tileView[float32](fisheye)
		v.Antialiased = true
		for k, tensor := range NewParams[float32](1, 0).Tensors() {
			for e := range tensor.Width {
				for _, x := range bad {
					p := NewParams[float32](1, 0)
					p.Quats[0] = 1
					p.Tensors()[k].Data[e] = x
					proj, img := Render(p, v, 1)
					for _, c := range img.Render {
						if !finite(c[0]+c[1]+c[2]+c[3]) && !(c[3] >= 0 && c[0] > 1e30) {
							t.Fatalf("fisheye %v, %s[%d] = %g: pixel %v of %+v", fisheye, tensor.Name, e, x, c,
								proj.Splats[0])
						}
					}
				}
			}
		}
	}
}

func TestTargetFromRGBA8(t *testing.T) {
	got := TargetFromRGBA8([]uint8{255, 0, 51, 255, 255, 0, 51, 0}, [3]float64{0.25, 0.5, 1})
	if !slices.Equal(got, []float64{1, 0, 51.0 / 255, 0.25, 0.5, 1}) {
		t.Errorf("target: %v", got)
	}
}

func TestRelocateEdges(t *testing.T) {
	for _, n := range []int{-1, 0, 1, 51, 99} {
		for _, opacity := range []float64{0, 1e-9, 0.005, 0.5, 0.999999, 1} {
			o, s := Relocate(opacity, 1-opacity, [3]float64{1, 2, 3}, n, 0.005)
			if !(o >= 0.005 && o <= 1) || !finite(s[0]) {
				t.Errorf("opacity %g, %d copies: %g, %v", opacity, n, o, s)
			}
		}
	}
	// One copy is the splat itself.
	if o, s := Relocate(0.3, 0.7, [3]float64{1, 2, 3}, 1, 0.005); math.Abs(o-0.3) > 1e-15 || math.Abs(s[2]-3) > 1e-12 {
		t.Errorf("one copy: %g, %v", o, s)
	}
}

// finite reports whether x is a number that float32 holds too.
func finite[T Real](x T) bool { return abs(x) < 3.4e38 }
