package scene

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"vksplat/internal/parallel"
)

// MaxSHDegree is the highest degree of spherical harmonics a model can hold.
const MaxSHDegree = 3

// SH0 is the constant spherical harmonic, 1 / (2 sqrt(pi)): a splat's colour from 0 to 1, seen from anywhere, is 0.5 +
// SH0 times coefficient 0.
const SH0 = 0.28209479177387814

// SHCoefficients returns the number K of coefficients per colour channel at a
// degree: (degree+1)^2.
func SHCoefficients(degree int) int { return (degree + 1) * (degree + 1) }

type SplatTensor struct {
	Name  string
	Width int // numbers of a splat
	Data  []float32
	Drawn bool // renderers need it, and files carry it
}

// At returns the numbers of splat i.
func (t *SplatTensor) At(i int) []float32 { return t.Data[t.Width*i : t.Width*(i+1)] }

// SplatPart is a tensor of Splats as checkpoints have it: an array, or of SH the coefficients sh0 or shN.
type SplatPart struct {
	Name       string
	Shape      []int  // of one splat: Width numbers in all
	Activation string // what turns the numbers, which are raw, into values
	Row        int    // place of the first number among all of a splat
	Width      int    // numbers of a splat
	Half       bool   // mixed precision stores halves

	array int // number of the array
	from  int // first number in it of those of a splat
}

// Of returns the array of s that holds the part, and where in it the numbers of splat i begin: at i*stride + from.
func (p *SplatPart) Of(s *Splats) (data []float32, stride, from int) {
	a := s.arrays()[p.array]
	return *a.data, a.width, p.from
}

type splatArray struct {
	name  string
	width int // numbers of a splat
	data  *[]float32
}

func SplatNumbers(degree int) int { return geometryNumbers + 3*SHCoefficients(degree) }

func NewSplats(n, degree int) *Splats {
	s := &Splats{N: n, Degree: degree}
	for _, a := range s.arrays() {
		*a.data = make([]float32, a.width*n)
	}
	return s
}

// K returns the number of SH coefficients per channel.
func (s *Splats) K() int { return SHCoefficients(s.Degree) }

// Slice returns splats [lo, hi) sharing memory with s. The bounds must satisfy
// 0 <= lo <= hi <= N, as for a Go slice.
func (s *Splats) Slice(lo, hi int) *Splats {
	out := *s
	out.N = hi - lo
	for _, a := range out.arrays() {
		*a.data = (*a.data)[a.width*lo : a.width*hi]
	}
	return &out
}

// ErrNotFinite says that a number is NaN or infinite.
var ErrNotFinite = errors.New("not a finite number")

// Take returns the splats of some numbers: a copy.
func (s *Splats) Take(ids []int) *Splats {
	out := NewSplats(len(ids), s.Degree)
	to := out.Tensors()
	for k, t := range s.Tensors() {
		for i, id := range ids {
			copy(to[k].At(i), t.At(id))
		}
	}
	return out
}

// CheckLengths compares the lengths of the tensors with N and Degree.
func (s *Splats) CheckLengths() error {
	if s.Degree < 0 || s.Degree > MaxSHDegree {
		return fmt.Errorf("check splats: sh degree is %d, want 0 to %d", s.Degree, MaxSHDegree)
	}
	if s.N < 0 {
		return fmt.Errorf("check splats: count is %d", s.N)
	}
	for _, t := range s.Tensors() {
		if len(t.Data) != s.N*t.Width {
			return fmt.Errorf("check splats: %s holds %d numbers, want %d splats x %d", t.Name, len(t.Data), s.N,
				t.Width)
		}
	}
	return nil
}

// Validate checks the lengths of all tensors and that every number is finite.
// The error names the tensor and the splat.
func (s *Splats) Validate() error {
	if err := s.CheckLengths(); err != nil {
		return err
	}
	for _, t := range s.Tensors() {
		if i := firstNotFinite(t.Data); i >= 0 {
			return fmt.Errorf("check splats: splat %d: %s[%d] is %v: %w",
				i/t.Width, t.Name, i%t.Width, t.Data[i], ErrNotFinite)
		}
	}
	return nil
}

// WithoutDirection counts the splats whose rotation says no direction in float32.
func (s *Splats) WithoutDirection() (n int) {
	for i := range s.N {
		q := s.Quats[4*i : 4*i+4]
		if norm := q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3]; !(norm > 0) || !Finite32(norm) {
			n++
		}
	}
	return n
}

// splatBlock is how many numbers a core works on at a time.
const splatBlock = 1 << 15

// InBlocks calls f for parts of n numbers on all cores.
func InBlocks(n int, f func(lo, hi int)) {
	parallel.For((n+splatBlock-1)/splatBlock, func(i int) { f(i*splatBlock, min((i+1)*splatBlock, n)) })
}

// firstNotFinite returns the index of the first NaN or infinity, or -1.
func firstNotFinite(v []float32) int {
	var mu sync.Mutex
	first := -1
	InBlocks(len(v), func(lo, hi int) {
		i := slices.IndexFunc(v[lo:hi], func(x float32) bool { return !Finite32(x) })
		if i < 0 {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if first < 0 || lo+i < first {
			first = lo + i
		}
	})
	return first
}

// Finite32 tells whether x is neither NaN nor infinite: an exponent that is
// not all ones.
func Finite32(x float32) bool { return math.Float32bits(x)&0x7f800000 != 0x7f800000 }

func Finite64(x float64) bool { return math.Float64bits(x)&(0x7ff<<52) != 0x7ff<<52 }

// NonFinite counts the splats with a NaN or infinite number, which renderers skip.
func (s *Splats) NonFinite() int {
	bad := make(map[int]bool)
	for _, t := range s.Tensors() {
		for at := 0; ; {
			i := firstNotFinite(t.Data[at:])
			if i < 0 {
				break
			}
			splat := (at + i) / t.Width
			bad[splat] = true
			at = (splat + 1) * t.Width
		}
	}
	return len(bad)
}

// HugeLog is the largest logarithm of a scale that can be drawn: covariances hold the square, which is near the largest
// float32.
const HugeLog = 40

// Huge counts the splats with a larger scale, which renderers skip or smear over every picture. It does not count those
// of NonFinite.
func (s *Splats) Huge() (n int) {
	for i := range s.N {
		if slices.Max(s.LogScales[3*i:3*i+3]) > HugeLog && s.Slice(i, i+1).NonFinite() == 0 {
			n++
		}
	}
	return n
}

// ToCapture returns the model in the capture's own frame less origin, for
// writing: mean/scale + centre - origin, computed in float64, and
// log_scale - ln(scale). Rotations, opacities and SH do not change and share
// memory with s, so the cost is six numbers per splat.
func (s *Splats) ToCapture(frame Frame, origin [3]float64) *Splats {
	return s.reframe(frame, func(x float64, axis int) float64 {
		return x/frame.Scale + (frame.Center[axis] - origin[axis])
	}, -1)
}

// FromCapture is the inverse of ToCapture: it brings a model written in the
// capture's frame less origin into the training frame:
// (mean + origin - centre) * scale, log_scale + ln(scale).
func (s *Splats) FromCapture(frame Frame, origin [3]float64) *Splats {
	return s.reframe(frame, func(x float64, axis int) float64 {
		return (x + (origin[axis] - frame.Center[axis])) * frame.Scale
	}, 1)
}

// reframe moves the means by move and adds sign*ln(scale) to the log scales.
func (s *Splats) reframe(frame Frame, move func(x float64, axis int) float64, sign float64) *Splats {
	out := *s
	out.Means = make([]float32, len(s.Means))
	out.LogScales = make([]float32, len(s.LogScales))
	shift := sign * math.Log(frame.Scale)
	InBlocks(len(s.Means), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			out.Means[i] = float32(move(float64(s.Means[i]), i%3))
			out.LogScales[i] = float32(float64(s.LogScales[i]) + shift)
		}
	})
	return &out
}

// WithDegree returns the splats with spherical harmonics of another degree: higher coefficients are dropped, or zero.
// Other tensors are shared with s.
func (s *Splats) WithDegree(degree int) *Splats {
	degree = min(max(degree, 0), MaxSHDegree)
	if degree == s.Degree {
		return s
	}
	out := *s
	out.Degree = degree
	from, to := 3*s.K(), 3*out.K()
	out.SH = make([]float32, to*s.N)
	for i := range s.N {
		copy(out.SH[to*i:to*(i+1)], s.SH[from*i:from*(i+1)])
	}
	return &out
}
