package adjust

import (
	"hash/fnv"
	"math"

	"vksplat/internal/philox"
)

// HeldBack is the share of observations that judge.
const HeldBack = 0.1

// Drawn draws whether what a key and a name stand for is among a share of all, as observations to hold back are. It
// depends on neither order nor others.
func Drawn(key uint64, name string, share float64) bool {
	h := fnv.New64a()
	h.Write([]byte(name)) // never fails
	bits := philox.Block([4]uint32{uint32(key), uint32(key >> 32)}, philox.Key(h.Sum64()))
	return float64(philox.Uniform(bits[0])) < share
}

// Losses returns the loss of each of some observations, which Solve need not have seen.
func (p *Problem) Losses(list []Observation, loss Loss) ([]float64, error) {
	q := *p
	q.Observations = list
	off, err := q.Residuals()
	losses := make([]float64, len(off))
	for i, d := range off {
		losses[i], _ = loss(d[0]*d[0] + d[1]*d[1])
	}
	return losses, err
}

// sure is by how many standard errors losses must be lower.
const sure = 3

// Lower reports whether losses are surely lower than others of the same observations, and by which share.
func Lower(now, before []float64) (share float64, yes bool) {
	var sum, squares, total float64
	for i := range now {
		d := before[i] - now[i]
		sum += d
		squares += d * d
		total += before[i]
	}
	n := float64(len(now))
	deviation := math.Sqrt(max(0, squares/n-sum*sum/n/n) / n)
	return sum / total, sum/n > sure*deviation
}
