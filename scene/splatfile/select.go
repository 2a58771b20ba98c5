package splatfile

import (
	"math"
	"slices"

	"github.com/kelindar/bitmap"

	"vksplat/scene"
	"vksplat/scene/initial"
)

// Selection says which splats of a model stay. Coordinates are those of the model. What is not given leaves all.
type Selection struct {
	Box        *[6]float64 // least x, y, z, then greatest: centres inside or on it stay
	Sphere     *[4]float64 // x, y, z and radius, likewise
	MinOpacity float64     // 0 to 1: splats of a lower opacity go
	Outliers   float64     // above 0: splats that stand alone go, see outliers
	MaxSplats  int         // above 0: keep this number of the most important
	// Removed are the numbers of splats that go in any case; nil: none
	Removed bitmap.Bitmap
}

// Dropped counts the splats that went, by the first reason that each had, in the order in which they are looked at.
type Dropped struct {
	Broken   int // a number is not finite, a rotation has no direction or a scale is beyond scene.HugeLog
	Removed  int
	Outside  int // of box or sphere
	Faint    int
	Outliers int
	Surplus  int
}

// selector goes over a model once and marks what stays.
type selector struct {
	s    Selection
	keep bitmap.Bitmap
	n    int // splats of the model
	at   int // of them seen
	d    Dropped

	means  []float32 // [N*3] of those that stay, where outliers are looked for or importance is asked for
	extent []float32 // [N] three standard deviations along the longest axis, where outliers are looked for
	weight []float32 // [N] opacity times mean area, where importance is asked for
	ids    []uint32  // of these splats
}

// Select leaves out what the selection drops, and splats that nothing can draw in any case. It reads the model once;
// where nothing goes it returns the model itself.
func Select(model Source, s Selection) (Source, Dropped, error) {
	n := model.Info().N
	w := &selector{s: s, n: n, keep: make(bitmap.Bitmap, (n+63)/64)}
	if err := model.Read(w.look); err != nil {
		return nil, Dropped{}, err
	}
	if s.Outliers > 0 {
		w.dropOutliers()
	}
	if s.MaxSplats > 0 && len(w.ids) > s.MaxSplats {
		w.dropSurplus()
	}
	if w.d == (Dropped{}) {
		return model, w.d, nil
	}
	info := model.Info()
	info.N = w.keep.Count()
	return &selected{model, info, w.keep}, w.d, nil
}

// reserve makes room for what note keeps of n splats: growing would take twice as much.
func (w *selector) reserve(n int) {
	if w.s.Outliers > 0 {
		w.extent = make([]float32, 0, n)
	}
	if w.s.MaxSplats > 0 {
		w.weight = make([]float32, 0, n)
	}
	if w.extent != nil || w.weight != nil {
		w.means, w.ids = make([]float32, 0, 3*n), make([]uint32, 0, n)
	}
}

func (w *selector) look(piece *scene.Splats) error {
	if w.at == 0 {
		w.reserve(w.n)
	}
	for i := range piece.N {
		id := w.at + i
		switch {
		case broken(piece, i) != nil || slices.Max(piece.LogScales[3*i:3*i+3]) > scene.HugeLog:
			w.d.Broken++
		case w.s.Removed.Contains(uint32(id)):
			w.d.Removed++
		case w.outside(piece.Means[3*i : 3*i+3]):
			w.d.Outside++
		case w.s.MinOpacity > 0 && sigmoid(piece.LogitOpacities[i]) < w.s.MinOpacity:
			w.d.Faint++
		default:
			w.keep.Set(uint32(id))
			w.note(piece, i, id)
		}
	}
	w.at += piece.N
	return nil
}

// note keeps what is asked for of a splat that stays so far.
func (w *selector) note(piece *scene.Splats, i, id int) {
	if w.ids == nil {
		return
	}
	w.ids = append(w.ids, uint32(id))
	w.means = append(w.means, piece.Means[3*i:3*i+3]...)
	axes := piece.LogScales[3*i : 3*i+3]
	if w.s.Outliers > 0 {
		w.extent = append(w.extent, float32(3*math.Exp(float64(slices.Max(axes)))))
	}
	if w.s.MaxSplats > 0 {
		w.weight = append(w.weight, float32(sigmoid(piece.LogitOpacities[i])*meanArea(axes)))
	}
}

func (w *selector) outside(mean []float32) bool {
	if b := w.s.Box; b != nil {
		for k, x := range mean {
			if float64(x) < b[k] || float64(x) > b[3+k] {
				return true
			}
		}
	}
	if s := w.s.Sphere; s != nil {
		d2 := 0.0
		for k, x := range mean {
			d := float64(x) - s[k]
			d2 += d * d
		}
		return d2 > s[3]*s[3]
	}
	return false
}

// meanArea is the area that an ellipsoid of these log axes covers, on average over all directions: a quarter of its
// surface (Cauchy), by Thomsen's approximation, which is within 1.1 %. The volume would not do: the splats of a wall
// are flat.
func meanArea(logAxes []float32) float64 {
	const p = 1.6075
	a, b, c := float64(logAxes[0]), float64(logAxes[1]), float64(logAxes[2])
	return math.Pi * math.Pow((math.Exp(p*(a+b))+math.Exp(p*(b+c))+math.Exp(p*(c+a)))/3, 1/p)
}

// drop takes the splats that go marks off the list, counting them.
func (w *selector) drop(goes func(i int) bool) (count int) {
	stay := 0
	for i, id := range w.ids {
		if goes(i) {
			w.keep.Remove(id)
			count++
			continue
		}
		w.ids[stay] = id
		copy(w.means[3*stay:3*stay+3], w.means[3*i:3*i+3])
		if w.weight != nil {
			w.weight[stay] = w.weight[i]
		}
		stay++
	}
	w.ids, w.means = w.ids[:stay], w.means[:3*stay]
	if w.weight != nil {
		w.weight = w.weight[:stay]
	}
	return count
}

// dropOutliers drops splats that stand alone. A splat's spacing is the mean distance to its three nearest others.
// Spacings of a scene range over orders of magnitude, so that their logarithms are compared: a splat goes whose spacing
// is more than Outliers robust standard deviations (1.4826 times the median absolute deviation) above the median, and
// beyond three standard deviations of the splat itself. The second keeps large splats of sky and background, which are
// far apart and overlap all the same.
func (w *selector) dropOutliers() {
	spacing := initial.Spacing(w.means)
	var logs []float64
	for i := 0; i < len(spacing); i += stride(len(spacing)) {
		logs = append(logs, math.Log(float64(spacing[i])))
	}
	middle := scene.Median(logs)
	for i, x := range logs {
		logs[i] = math.Abs(x - middle)
	}
	limit := math.Exp(middle + w.s.Outliers*1.4826*scene.Median(logs))
	w.d.Outliers = w.drop(func(i int) bool { return float64(spacing[i]) > limit && spacing[i] > w.extent[i] })
	w.extent = nil
}

// sampleSize is how many splats statistics of a model are taken from, at most twice as many: evenly from the file's
// order.
const sampleSize = 1 << 18

func stride(n int) int { return max(n/sampleSize, 1) }

// dropSurplus keeps the MaxSplats splats of the greatest importance; of equal ones, the first. Importance is opacity
// times the area that a splat covers on average over all directions, over the square of its distance r0^2 + d^2 from
// the middle of the scene: about the share of a picture that it fills for a camera in or around the scene. d is the
// distance from the median position, r0 the median of d.
func (w *selector) dropSurplus() {
	from := reachOf(len(w.ids), w.means)
	for i := range w.weight {
		if w.weight[i] /= float32(from.distance2(w.means[3*i:3*i+3]) + from.near); !(w.weight[i] >= 0) {
			w.weight[i] = 0 // all splats in one place
		}
	}
	sorted := slices.Clone(w.weight)
	slices.Sort(sorted)
	least := sorted[len(sorted)-w.s.MaxSplats]
	first, _ := slices.BinarySearch(sorted, least)
	surplusTies := len(sorted) - w.s.MaxSplats - first
	ties := 0
	for _, x := range w.weight {
		if x == least {
			ties++
		}
	}
	keepTies := ties - surplusTies
	w.d.Surplus = w.drop(func(i int) bool {
		if w.weight[i] == least {
			keepTies--
			return keepTies < 0
		}
		return w.weight[i] < least
	})
}

// selected is a model without some of its splats.
type selected struct {
	Source
	info Info
	keep bitmap.Bitmap
}

func (s *selected) Info() Info { return s.info }

func (s *selected) Read(put func(piece *scene.Splats) error) error {
	at := 0
	return s.Source.Read(func(piece *scene.Splats) error {
		stay := 0
		for i := range piece.N {
			if s.keep.Contains(uint32(at + i)) {
				if stay < i {
					copySplats(piece, stay, piece, i, 1)
				}
				stay++
			}
		}
		at += piece.N
		if stay == 0 {
			return nil
		}
		return put(piece.Slice(0, stay))
	})
}
