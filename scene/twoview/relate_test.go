package twoview

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"vksplat/internal/geom"
)

// Relations of made-up photos, by seed: how many are of the wanted kind, how exact they are, and which matches agree.
func TestRelate(t *testing.T) {
	const seeds = uint32(8)
	side := vec{-1, 0.1, 0.2}
	for name, c := range map[string]struct {
		recipe
		kind            Kind
		right           int     // of 8 seeds, at least
		turn, direction float64 // degrees: median
	}{
		"sideways": {recipe{lens: openCV, turn: 0.1, move: side, n: 500}, Calibrated, 8, 0.06, 0.15},
		"many outliers": {recipe{lens: openCV, turn: 0.1, move: side, n: 300, outliers: 0.5}, Calibrated, 7,
			0.09, 0.25},
		"few matches":    {recipe{lens: openCV, turn: 0.1, move: side, n: 40}, Calibrated, 7, 0.25, 0.6},
		"turned":         {recipe{lens: plain, turn: 0.2, move: vec{-2, 1, 0.5}, n: 300}, Calibrated, 8, 0.08, 0.2},
		"forward":        {recipe{lens: openCV, turn: 0.02, move: vec{0, 0, -1}, n: 500}, Calibrated, 8, 0.05, 0.3},
		"translation":    {recipe{lens: openCV, move: vec{-1, 0, 0}, n: 500}, Calibrated, 8, 0.05, 0.15},
		"fisheye":        {recipe{lens: fisheye, turn: 0.1, move: side, n: 500}, Calibrated, 8, 0.04, 0.15},
		"plane":          {recipe{lens: openCV, plane: true, turn: 0.1, move: side, n: 500}, Planar, 8, 0.3, 1.5},
		"rotation":       {recipe{lens: openCV, turn: 0.1, n: 500}, Rotation, 8, 0.02, 1e-9},
		"unknown":        {recipe{lens: plain, unknown: true, turn: 0.1, move: side, n: 500}, Uncalibrated, 8, 0, 0},
		"unknown, plane": {recipe{lens: plain, unknown: true, plane: true, move: side, n: 500}, Planar, 8, 0, 0},
		"nothing alike":  {recipe{lens: openCV, move: side, n: 40, outliers: 1}, Unrelated, 8, 0, 0},
		"nothing, unknown": {recipe{lens: openCV, unknown: true, move: side, n: 40, outliers: 1}, Unrelated, 7,
			0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if c.noise = 0.5; c.outliers == 0 {
				c.outliers = 0.3
			}
			right := 0
			var turns, directions []float64
			for seed := range seeds {
				m := c.make(t, seed)
				r := Relate(m.a, m.b, m.matches, Options{Key: uint64(seed)})
				if r.Kind == c.kind && (r.Kind == Unrelated || m.agrees(&r)) {
					right++
				}
				turn, direction := m.off(&r)
				turns, directions = append(turns, turn), append(directions, direction)
			}
			if right < c.right {
				t.Errorf("%d of 8 are right, want %d", right, c.right)
			}
			turn, direction := geom.Quantile(turns, 0.5), geom.Quantile(directions, 0.5)
			if c.turn > 0 && (turn > c.turn || direction > c.direction) {
				t.Errorf("off by %.3g and %.3g degrees, want %.3g and %.3g", turn, direction, c.turn, c.direction)
			}
		})
	}
}

// agrees says whether nearly all right matches are inliers and few others, and whether the matrices agree with them.
func (m *made) agrees(r *Relation) bool {
	right, good, wrong := 0, 0, 0
	for _, w := range m.wrong {
		if !w {
			right++
		}
	}
	var off []float64
	for _, i := range r.Inliers {
		if m.wrong[i] {
			wrong++
			continue
		}
		good++
		x, y := m.a.Points[m.matches[i][0]], m.b.Points[m.matches[i][1]]
		l := geom.Rotate(r.F, vec{float64(x[0]), float64(x[1]), 1})
		off = append(off, math.Abs(l[0]*float64(y[0])+l[1]*float64(y[1])+l[2])/math.Hypot(l[0], l[1]))
	}
	plain := m.a.Optics.Plane == 0 // F holds up to distortion
	return float64(good) > 0.95*float64(right) && float64(wrong) < 0.1*float64(right) && slices.IsSorted(r.Inliers) &&
		(!plain || geom.Quantile(off, 0.5) < 5)
}

// The relation depends on the arguments alone, and on the key hardly.
func TestSame(t *testing.T) {
	m := recipe{lens: openCV, turn: 0.1, move: vec{-1, 0.1, 0.2}, n: 200, noise: 0.5, outliers: 0.3}.make(t, 1)
	first := Relate(m.a, m.b, m.matches, Options{Key: 1})
	if !reflect.DeepEqual(first, Relate(m.a, m.b, m.matches, Options{Key: 1})) {
		t.Error("the same arguments give another relation")
	}
	other := Relate(m.a, m.b, m.matches, Options{Key: 2})
	if d := apart(first.E, other.E); !(d < 0.01) {
		t.Errorf("another key changes the essential matrix by %.3g", d)
	}
}

// A text at the same place of both photos is a watermark, not a relation.
func TestWatermark(t *testing.T) {
	m := recipe{lens: openCV, turn: 0.1, move: vec{-1, 0.1, 0.2}, n: 60, noise: 0.3, outliers: 1}.make(t, 1)
	d := &draws{seed: 2}
	for i := range 50 {
		x := [2]float32{float32(d.between(1200, 1590)), float32(d.between(1130, 1190))}
		m.a.Points[i], m.b.Points[i] = x, [2]float32{x[0] + float32(0.2*d.normal()), x[1]}
	}
	for _, known := range []bool{true, false} {
		m.a.FocalKnown = known
		if r := Relate(m.a, m.b, m.matches, Options{}); r.Kind != Watermark {
			t.Errorf("kind %v of a watermark", r.Kind)
		}
	}
}

func BenchmarkRelate(b *testing.B) {
	for _, outliers := range []float64{0.3, 0.5} {
		for _, unknown := range []bool{false, true} {
			b.Run(fmt.Sprintf("outliers %v, unknown %v", outliers, unknown), func(b *testing.B) {
				m := recipe{lens: openCV, unknown: unknown, turn: 0.1, move: vec{-1, 0.1, 0.2}, n: 500, noise: 0.5,
					outliers: outliers}.make(b, 3)
				key := uint64(0)
				for b.Loop() {
					Relate(m.a, m.b, m.matches, Options{Key: key})
					key++
				}
			})
		}
	}
}

// A photo and itself are a rotation by nothing; what is not finite is no match.
func TestDegenerate(t *testing.T) {
	m := recipe{lens: openCV, turn: 0.1, move: vec{-1, 0.1, 0.2}, n: 100}.make(t, 1)
	if r := Relate(m.a, m.a, m.matches, Options{}); r.Kind != Rotation || apart(r.R, geom.Identity) > 1e-9 {
		t.Errorf("a photo and itself: kind %v, rotation %v", r.Kind, r.R)
	}
	for i := range m.a.Points {
		m.a.Points[i][0], m.b.Points[i][1] = float32(math.NaN()), float32(math.Inf(1))
	}
	for _, known := range []bool{true, false} {
		m.a.FocalKnown = known
		if r := Relate(m.a, m.b, m.matches, Options{}); r.Kind != Unrelated {
			t.Errorf("kind %v of what is not finite", r.Kind)
		}
	}
}

// A short way between two photos, of a few pixels, is not taken for a rotation.
func TestShortWay(t *testing.T) {
	rotations := 0
	for seed := range uint32(8) {
		m := recipe{lens: openCV, turn: 0.1, move: vec{-0.03, 0, 0}, n: 300, noise: 0.3, outliers: 0.2}.make(t, seed)
		if r := Relate(m.a, m.b, m.matches, Options{Key: uint64(seed)}); r.Kind == Rotation {
			rotations++
		}
	}
	if rotations > 0 {
		t.Errorf("%d of 8 are rotations", rotations)
	}
}
