package ref

import "vksplat/shaders/layout"

// paramArray is a field of Params.
type paramArray[T Real] struct {
	name  string
	width int // elements per splat
	data  *[]T
}

func NewParams[T Real](n, degree int) *Params[T] {
	p := &Params[T]{N: n, Degree: degree}
	for _, a := range p.arrays() {
		*a.data = make([]T, a.width*n)
	}
	return p
}

// Coefficients returns K, the number of spherical harmonics coefficients per colour channel.
func (p *Params[T]) Coefficients() int { return (p.Degree + 1) * (p.Degree + 1) }

// ParamRows returns the number of parameters of a splat of an SH degree: the rows of layout.RowMeans and so on.
func ParamRows(degree int) int { return layout.RowSh + 3*(degree+1)*(degree+1) }

type Tensor[T Real] struct {
	Name  string
	Width int // elements per splat
	Data  []T // [N*Width]
}

func (p *Params[T]) first(n int) {
	p.N = n
	for _, a := range p.arrays() {
		*a.data = (*a.data)[:a.width*n]
	}
}

func (p *Params[T]) Clone() *Params[T] {
	c := NewParams[T](p.N, p.Degree)
	to := c.Tensors()
	for i, from := range p.Tensors() {
		copy(to[i].Data, from.Data)
	}
	return c
}

// copySplat copies splat from of src to splat to of p. The degrees must agree.
func (p *Params[T]) copySplat(to int, src *Params[T], from int) {
	dst := p.Tensors()
	for i, s := range src.Tensors() {
		copy(dst[i].Data[to*s.Width:(to+1)*s.Width], s.Data[from*s.Width:(from+1)*s.Width])
	}
}

func (p *Params[T]) mean(i int) vec3[T]     { return vec3[T](p.Means[3*i : 3*i+3]) }
func (p *Params[T]) logScale(i int) vec3[T] { return vec3[T](p.LogScales[3*i : 3*i+3]) }
func (p *Params[T]) quat(i int) [4]T        { return [4]T(p.Quats[4*i : 4*i+4]) }

// scales returns the activated scales of splat i.
func (p *Params[T]) scales(i int) vec3[T] {
	s := p.logScale(i)
	return vec3[T]{exp(s[0]), exp(s[1]), exp(s[2])}
}

// ConvertParams copies parameters into another arithmetic.
func ConvertParams[To, From Real](p *Params[From]) *Params[To] {
	c := NewParams[To](p.N, p.Degree)
	to := c.Tensors()
	for i, from := range p.Tensors() {
		copy(to[i].Data, ConvertSlice[To](from.Data))
	}
	return c
}

// ConvertSlice copies numbers into another arithmetic.
func ConvertSlice[To, From Real](x []From) []To {
	y := make([]To, len(x))
	for i, v := range x {
		y[i] = To(v)
	}
	return y
}

// Model is a model in training: parameters, Adam's first and second moments, and the statistics of the default
// strategy.
type Model[T Real] struct {
	Params[T]
	M, V   Params[T]
	Grad2D []T // [N] sum of scaled 2D gradient norms
	Count  []T // [N] steps in which the splat was visible
}

// NewModel wraps parameters with zero moments and statistics. It shares the arrays of p.
func NewModel[T Real](p *Params[T]) *Model[T] {
	return &Model[T]{
		Params: *p, M: *NewParams[T](p.N, p.Degree), V: *NewParams[T](p.N, p.Degree),
		Grad2D: make([]T, p.N), Count: make([]T, p.N),
	}
}
