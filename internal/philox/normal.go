package philox

import (
	"math"
)

// NormalPair makes two normal numbers, r cos and r sin, of uniform ones: u above 0 and up to 1, v from 0 to 1 (Box and
// Muller).
func NormalPair(u, v float64) (r, sin, cos float64) {
	sin, cos = math.Sincos(2 * math.Pi * v)
	return math.Sqrt(-2 * math.Log(u)), sin, cos
}
