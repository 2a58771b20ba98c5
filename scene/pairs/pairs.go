// Package pairs chooses which pairs of photos are worth matching: all of a few photos, else those that are near each
// other by the order of names or frames, by GPS, or by what they show (retrieve.go). The same photos give the same
// pairs, on any number of cores.
package pairs

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"vksplat/internal/parallel"
)

// Photo is what is known of a photo before it is matched.
type Photo struct {
	Sequence string // photos of one sequence were taken one after the other: a video, a folder; "": it is in none
	Name     string // decides the order in a sequence: 9.jpg comes before 10.jpg
	// Located says that GPS has told where the photo was taken: metres to the east and north of a place that all share.
	// Height is left out: GPS is often tens of metres off.
	Located     bool
	East, North float64
	Descriptors []byte // of its features, 128 bytes each, the largest first; for retrieval
}

// Options say how many pairs there are.
type Options struct {
	All     int    // at most so many photos are matched each with each
	Window  int    // photos behind each one of a sequence; and those 2, 4, 8 windows behind
	Near    int    // nearest photos by GPS
	Loops   int    // most similar photos of each that has pairs by its sequence or by GPS, 4 windows away at least
	Similar int    // most similar photos of each that has none
	Seed    uint64 // of retrieval
	// Of pairs that are scored before: features of each photo that are compared, matches that are enough, and pairs of
	// each photo that are kept, however low they score.
	Scored, Enough, Few int
}

// Defaults do for the captures that COLMAP's do for: a window of 10 with doubled distances, loops from every tenth
// photo to 50 others, 50 photos by GPS, 100 by a vocabulary. Photos of different scenes score 0 to 3.
var Defaults = Options{All: 300, Window: 10, Near: 30, Loops: 5, Similar: 40, Scored: 512, Enough: 6, Few: 10}

// chooser is a choice under way.
type chooser struct {
	photos []Photo
	o      Options
	place  []int           // of a photo in its sequence; those of different ones are far apart
	pairs  map[[2]int]bool // the lower index first
}

func (c *chooser) add(i, j int) { c.pairs[[2]int{min(i, j), max(i, j)}] = true }

// Choose returns pairs of indices, the lower first, in order.
func Choose(photos []Photo, o Options) [][2]int {
	c := &chooser{photos, o, make([]int, len(photos)), map[[2]int]bool{}}
	if len(photos) <= o.All {
		for i := range photos {
			for j := range i {
				c.add(i, j)
			}
		}
	} else {
		c.inOrder()
		c.nearby()
		c.similar()
	}
	return slices.SortedFunc(maps.Keys(c.pairs), func(a, b [2]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) })
}

// inOrder adds pairs of sequences.
func (c *chooser) inOrder() {
	sequences, window := map[string][]int{}, max(1, c.o.Window)
	for i, p := range c.photos {
		c.place[i] = i << 20
		if p.Sequence != "" {
			sequences[p.Sequence] = append(sequences[p.Sequence], i)
		}
	}
	for _, s := range sequences {
		first := c.place[s[0]]
		slices.SortStableFunc(s, func(i, j int) int {
			return cmp.Compare(orderOf(c.photos[i].Name), orderOf(c.photos[j].Name))
		})
		for k, i := range s {
			c.place[i] = first + k
			for back := 1; back <= k; back += max(1, back/window*window) { // from the window on doubled
				c.add(i, s[k-back])
			}
		}
	}
}

// nearby adds pairs with the nearest photos by GPS.
func (c *chooser) nearby() {
	c.addBest(func(int) int { return c.o.Near }, func(i, j int) float64 {
		a, b := &c.photos[i], &c.photos[j]
		if !a.Located || !b.Located {
			return math.Inf(-1)
		}
		return -math.Hypot(a.East-b.East, a.North-b.North)
	})
}

// addBest adds for each photo the pairs with the highest scores above -Inf, of equal ones those with the first photos.
func (c *chooser) addBest(most func(i int) int, score func(i, j int) float64) {
	found := make([][]int, len(c.photos))
	parallel.For(len(found), func(i int) {
		found[i] = best(len(found), most(i), func(j int) float64 {
			if i == j {
				return math.Inf(-1)
			}
			return score(i, j)
		})
	})
	for i, others := range found {
		for _, j := range others {
			c.add(i, j)
		}
	}
}

// best returns those of n candidates with the highest scores above -Inf, of equal ones the first.
func best(n, most int, score func(i int) float64) (list []int) {
	scores := make([]float64, n)
	for i := range scores {
		if scores[i] = score(i); scores[i] > math.Inf(-1) {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(i, j int) int { return cmp.Compare(scores[j], scores[i]) })
	return list[:min(most, len(list))]
}

// Promising returns the pairs that are worth matching in full, by how many of their photos' largest features match.
func Promising(pairs [][2]int, scores []int, o Options) (kept [][2]int) {
	byPhoto, keep := map[int][]int{}, make([]bool, len(pairs))
	for k, p := range pairs {
		keep[k] = scores[k] >= o.Enough
		byPhoto[p[0]], byPhoto[p[1]] = append(byPhoto[p[0]], k), append(byPhoto[p[1]], k)
	}
	for _, list := range byPhoto {
		for _, k := range best(len(list), o.Few, func(k int) float64 { return float64(scores[list[k]]) }) {
			keep[list[k]] = true
		}
	}
	for k, p := range pairs {
		if keep[k] {
			kept = append(kept, p)
		}
	}
	return kept
}

var number = regexp.MustCompile("[0-9]+")

// orderOf makes names sort as people number them: 9.jpg before 10.jpg.
func orderOf(name string) string {
	return number.ReplaceAllStringFunc(name, func(n string) string { return fmt.Sprintf("%20s", strings.TrimLeft(n, "0")) })
}
