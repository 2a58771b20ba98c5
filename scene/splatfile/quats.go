package splatfile

import "math"

// Rotations that formats pack. q and -q are the same rotation, and of a rotation of length 1 three components tell the
// fourth, so that the largest is left out and its sign is positive. The others are at most 1/sqrt(2).

// threeOf gives the place of the largest component of a rotation of length 1, and the others in their order.
func threeOf(q [4]float64) (largest int, others [3]float64) {
	for i, x := range q {
		if math.Abs(x) > math.Abs(q[largest]) {
			largest = i
		}
	}
	at := 0
	for i, x := range q {
		if i != largest {
			others[at] = math.Copysign(1, q[largest]) * x
			at++
		}
	}
	return largest, others
}

// fourOf is the inverse of threeOf. Rounded components may be longer than 1 together: then there is no fourth.
func fourOf(largest int, others [3]float64) (q [4]float64) {
	at, squares := 0, 0.0
	for i := range q {
		if i != largest {
			q[i] = others[at]
			squares += float64(q[i] * q[i])
			at++
		}
	}
	q[largest] = math.Sqrt(max(0, 1-squares))
	if squares > 1 {
		for i := range q {
			q[i] /= math.Sqrt(squares)
		}
	}
	return q
}

func doubles(q []float32) [4]float64 {
	return [4]float64{float64(q[0]), float64(q[1]), float64(q[2]), float64(q[3])}
}

// setQuat stores a rotation; what has no direction is none.
func setQuat(to []float32, w, x, y, z float64) {
	to[0], to[1], to[2], to[3] = float32(w), float32(x), float32(y), float32(z)
	if to[0] == 0 && to[1] == 0 && to[2] == 0 && to[3] == 0 {
		to[0] = 1
	}
}
