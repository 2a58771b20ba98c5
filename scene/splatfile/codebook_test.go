package splatfile

import (
	"math"
	"slices"
	"testing"

	"vksplat/internal/philox"
)

// quantisation error of values with a codebook, summed.
func codebookError(values, codebook []float32) (sum float64) {
	code := newCoder(codebook)
	for _, x := range values {
		d := float64(x) - float64(codebook[code.code(x)])
		sum += d * d
	}
	return sum
}

func TestPartitionIsBest(t *testing.T) {
	c := &cells{}
	for i := range 40 {
		random := philox.Block([4]uint32{uint32(i)}, philox.Key(3))
		c.value, c.weight = append(c.value, philox.Uniform(random[0])*philox.Uniform(random[1])),
			append(c.weight, 1+float64(random[2]%9))
	}
	slices.Sort(c.value)
	c.sums()
	// least[k][hi]: all cuts of the first hi cells into k intervals.
	n := len(c.value)
	least := make([][]float64, 12)
	for k := range least {
		least[k] = slices.Repeat([]float64{math.Inf(1)}, n+1)
	}
	least[0][0] = 0
	for k := 1; k < len(least); k++ {
		for hi := 1; hi <= n; hi++ {
			for lo := range hi {
				least[k][hi] = min(least[k][hi], least[k-1][lo]+c.cost(lo, hi))
			}
		}
		sum, lo := 0.0, 0
		for _, hi := range c.partition(k) {
			sum += c.cost(lo, hi)
			lo = hi
		}
		if math.Abs(sum-least[k][n]) > 1e-9 || lo != n {
			t.Errorf("%d intervals cost %v, the best %v; they end at %d", k, sum, least[k][n], lo)
		}
	}
}

func TestCodebook(t *testing.T) {
	normal := make([]float32, 100000)
	s := shinySplats(len(normal)/3+1, 0)
	copy(normal, s.SH)
	h := newHistogram()
	h.add(normal...)
	book := h.codebook()
	if !slices.IsSorted(book) {
		t.Error("the codebook does not ascend")
	}
	// The least error of 256 values for a normal distribution is sqrt(3) pi / (2 * 256^2) of the variance (Panter and
	// Dite 1951).
	if got, best := codebookError(normal, book)/float64(len(normal)), math.Sqrt(3)*math.Pi/2/65536; got > 1.1*best {
		t.Errorf("normal numbers: squared error %v, the best is about %v", got, best)
	}
	far := newHistogram()
	far.add(normal...)
	far.add(-1e6, 3e5)
	if with, without := codebookError(normal, far.codebook()), codebookError(normal, book); with > 1.1*without {
		t.Errorf("two numbers far away: squared error %v, %v without them", with, without)
	}
	few := newHistogram()
	values := []float32{0, -1, 1, 0.5, 3e38, -3e38, 1e-40}
	few.add(values...)
	book = few.codebook()
	code := newCoder(book)
	for _, x := range values {
		if got := book[code.code(x)]; got != x {
			t.Errorf("%v is stored as %v", x, got)
		}
	}
	if book := newHistogram().codebook(); len(book) != codebookSize || book[0] != 0 {
		t.Errorf("no numbers: %v", book)
	}
}

// Counts like Fibonacci's numbers make the deepest trees: prefixes must not be longer than the format allows, and the
// image must come back.
func TestPrefixLimit(t *testing.T) {
	var pixels []uint8
	a, b := 1, 1
	for symbol := range 22 {
		pixels = append(pixels, slices.Repeat([]uint8{uint8(symbol * 11)}, a)...)
		a, b = b, a+b
	}
	counts := make([]uint64, 256)
	for _, p := range pixels {
		counts[p]++
	}
	for _, limit := range []int{7, maxPrefix} {
		kraft := 0.0
		for _, length := range newPrefixCode(counts, limit).length {
			if int(length) > limit {
				t.Errorf("a prefix of %d bits, limit %d", length, limit)
			}
			if length > 0 {
				kraft += math.Pow(2, -float64(length))
			}
		}
		if kraft != 1 {
			t.Errorf("limit %d: the prefixes take %v of all", limit, kraft)
		}
	}
	for channels := 1; channels <= 4; channels++ {
		checkLossless(t, &losslessImage{pixels[:len(pixels)/channels*channels], channels, 200, 300})
	}
}
