package tiles

import (
	"math"
	"testing"
)

// TestTransform compares with what is known of points on the equator, and of the north pole.
func TestTransform(t *testing.T) {
	for _, c := range []struct {
		place Place
		at    [3]float64
		x, z  [3]float64 // where the model's x and z point
	}{
		{Place{0, 0, 10, 0}, [3]float64{6378147, 0, 0}, [3]float64{0, 1, 0}, [3]float64{0, 0, 1}},
		{Place{0, 0, 0, 90}, [3]float64{6378137, 0, 0}, [3]float64{0, 0, -1}, [3]float64{0, 1, 0}},
		{Place{90, 0, 0, 0}, [3]float64{0, 0, 6356752.314245}, [3]float64{0, 1, 0}, [3]float64{-1, 0, 0}},
		{Place{0, 90, 0, 180}, [3]float64{0, 6378137, 0}, [3]float64{1, 0, 0}, [3]float64{0, 0, -1}},
	} {
		m := c.place.Transform()
		axis := func(p [3]float64) (to [3]float64) {
			q := ZUp(p)
			for k := range 3 {
				to[k] = m[k]*q[0] + m[4+k]*q[1] + m[8+k]*q[2]
			}
			return to
		}
		for k := range 3 {
			if math.Abs(m[12+k]-c.at[k]) > 1e-4 || math.Abs(axis([3]float64{1, 0, 0})[k]-c.x[k]) > 1e-9 ||
				math.Abs(axis([3]float64{0, 0, 1})[k]-c.z[k]) > 1e-9 {
				t.Errorf("%+v: %v, x %v, z %v", c.place, m[12:15], axis([3]float64{1, 0, 0}),
					axis([3]float64{0, 0, 1}))
				break
			}
		}
	}
}

// TestTransformBack finds latitude, longitude and height of a transform again, by Bowring's formula.
func TestTransformBack(t *testing.T) {
	want := Place{Latitude: 48.8584, Longitude: 2.2945, Height: 330}
	m := want.Transform()
	x, y, z := m[12], m[13], m[14]
	polar := equator * (1 - flattening)
	squared := flattening * (2 - flattening)
	p := math.Hypot(x, y)
	theta := math.Atan2(z*equator, p*polar)
	sin, cos := math.Sincos(theta)
	lat := math.Atan2(z+squared/(1-squared)*polar*sin*sin*sin, p-squared*equator*cos*cos*cos)
	height := p/math.Cos(lat) - equator/math.Sqrt(1-squared*math.Sin(lat)*math.Sin(lat))
	got := Place{Latitude: lat * 180 / math.Pi, Longitude: math.Atan2(y, x) * 180 / math.Pi, Height: height}
	if math.Abs(got.Latitude-want.Latitude) > 1e-9 || math.Abs(got.Longitude-want.Longitude) > 1e-9 ||
		math.Abs(got.Height-want.Height) > 1e-4 {
		t.Errorf("%+v, want %+v", got, want)
	}
	up := [3]float64{m[8], m[9], m[10]}
	if math.Abs(math.Hypot(math.Hypot(up[0], up[1]), up[2])-1) > 1e-12 {
		t.Errorf("up is %v", up)
	}
}

// TestVolume wants the frame of captures (right, down, forward) to become z up.
func TestVolume(t *testing.T) {
	v := VolumeOf([3]float32{1, 2, 3}, [3]float32{3, 8, 13})
	if want := [12]float64{-2, -8, -5, 1, 0, 0, 0, 5, 0, 0, 0, 3}; v.Box != want {
		t.Errorf("%v, want %v", v.Box, want)
	}
}
