package pairs

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas32"

	"vksplat/internal/parallel"
	"vksplat/internal/philox"
)

// What photos show is compared by VLAD (Jégou et al. 2010, Aggregating local descriptors into a compact image
// representation): each feature is assigned to the nearest of a few words, which are found by k-means among the
// capture's own features, and a photo is the sum of differences of its features from their words, word by word of
// length 1 (Arandjelović and Zisserman 2013, All about VLAD).
const (
	dims    = 128
	words   = 32
	sampled = 8192 // features that words are made of
	rounds  = 10   // of k-means
	stream  = 0x10004
)

// Described is how many features of a photo count, the first ones.
const Described = 1000

func (p *Photo) features() int { return min(Described, len(p.Descriptors)/dims) }

// feature returns a descriptor as numbers, and 1 behind them.
func (p *Photo) feature(k int) []float32 {
	f := make([]float32, dims, dims+1)
	for i, b := range p.Descriptors[k*dims:][:dims] {
		f[i] = float32(b)
	}
	return append(f, 1)
}

func vector(x []float32) blas32.Vector { return blas32.Vector{N: len(x), Inc: 1, Data: x} }

// nearest returns the word nearest to a feature, the first of equally near ones. Behind a word's numbers is half the
// square of its length, negative, so that the largest product is the least distance.
func nearest(vocabulary [][]float32, f []float32) (word int) {
	most := float32(math.Inf(-1))
	for i, w := range vocabulary {
		if s := blas32.Dot(vector(w), vector(f)); s > most {
			word, most = i, s
		}
	}
	return word
}

// sample draws features of all photos, one of each of equal parts of them all.
func sample(photos []Photo, seed uint64) (features [][]float32) {
	ends, all := make([]int, len(photos)), 0
	for i := range photos {
		all += photos[i].features()
		ends[i] = all
	}
	n, photo := min(sampled, all), 0
	for k := range n {
		bits, from := philox.Block([4]uint32{uint32(k), 0, stream, 0}, philox.Key(seed)), k*all/n
		at := from + int(philox.Uniform(bits[0])*float64((k+1)*all/n-from))
		for at >= ends[photo] {
			photo++
		}
		features = append(features, photos[photo].feature(at-ends[photo]+photos[photo].features()))
	}
	return features
}

// wordOf returns a word of numbers.
func wordOf(x []float32) []float32 {
	x = slices.Clone(x[:dims])
	return append(x, -blas32.Dot(vector(x), vector(x))/2)
}

// newVocabulary finds words by k-means. Sums are in the order of features.
func newVocabulary(features [][]float32) (vocabulary [][]float32) {
	for k := range min(words, len(features)) {
		vocabulary = append(vocabulary, wordOf(features[k*len(features)/words]))
	}
	word := make([]int, len(features))
	for range rounds {
		parallel.For(len(features), func(i int) { word[i] = nearest(vocabulary, features[i]) })
		sums, counts := make([][dims]float64, len(vocabulary)), make([]float64, len(vocabulary))
		for i, f := range features {
			counts[word[i]]++
			for k, x := range f[:dims] {
				sums[word[i]][k] += float64(x)
			}
		}
		for w := range vocabulary {
			for k, sum := range sums[w] {
				if counts[w] > 0 {
					vocabulary[w][k] = float32(sum / counts[w])
				}
			}
			vocabulary[w] = wordOf(vocabulary[w])
		}
	}
	return vocabulary
}

// describe returns a photo's vector, of length 1, or zeros if it has no features.
func describe(p *Photo, vocabulary [][]float32) []float32 {
	v := make([]float32, len(vocabulary)*dims)
	for k := range p.features() {
		f := p.feature(k)
		word := nearest(vocabulary, f)
		for i, x := range f[:dims] {
			v[word*dims+i] += x - vocabulary[word][i]
		}
	}
	for w := range vocabulary {
		normalise(v[w*dims:][:dims])
	}
	return normalise(v)
}

func normalise(x []float32) []float32 {
	if length := blas32.Nrm2(vector(x)); length > 0 {
		blas32.Scal(1/length, vector(x))
	}
	return x
}

// similar adds pairs of photos that look alike: a few of those in a sequence or with a place, more of the others.
func (c *chooser) similar() {
	vocabulary, vectors := newVocabulary(sample(c.photos, c.o.Seed)), make([][]float32, len(c.photos))
	parallel.For(len(c.photos), func(i int) { vectors[i] = describe(&c.photos[i], vocabulary) })
	c.addBest(func(i int) int {
		if c.photos[i].Sequence != "" || c.photos[i].Located {
			return c.o.Loops
		}
		return c.o.Similar
	}, func(i, j int) float64 {
		if c.photos[i].features() == 0 || c.photos[j].features() == 0 ||
			c.pairs[[2]int{min(i, j), max(i, j)}] ||
			max(c.place[i]-c.place[j], c.place[j]-c.place[i]) < 4*c.o.Window {
			return math.Inf(-1)
		}
		return float64(blas32.Dot(vector(vectors[i]), vector(vectors[j])))
	})
}
