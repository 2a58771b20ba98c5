package checkpoint

import (
	"encoding/binary"

	"vksplat/scene"
	"vksplat/scene/safetensors"
	"vksplat/shaders/layout"
)

// field is a tensor of the splats: some rows of every chunk, or the halves of their words that are its.
type field struct {
	name  string
	dtype string // F32; in mixed precision also F16, BF16
	param int    // number of the parameter that its first number is, or is a moment of
	width int    // numbers of a splat
	shape []int  // of one splat, width numbers in all
	row   int    // first row of a chunk that it lies in
	rows  int    // and how many; width of numbers of 32 bits
	half  int    // of numbers of 16 bits: the half word where the first is, counted from row
	step  int    // from one to the next
}

// statNames are the statistics' tensors, in the order of their rows.
var statNames = [layout.StatRows]string{layout.StatGrad2d: "stat_grad2d", layout.StatCount: "stat_count"}

// activations say what turns stored numbers into values.
var activations = activationsOf()

// activationsOf says of each tensor of parameters what turns its numbers into values.
func activationsOf() map[string]string {
	m := map[string]string{}
	for _, p := range scene.SplatParts(scene.MaxSHDegree) {
		m[p.Name] = p.Activation
	}
	return m
}

// paramFields lists the tensors of a model's parameters in the order of the file.
func paramFields(c layout.Rows) (list []field) {
	for _, p := range scene.SplatParts(c.Degree) {
		f := field{name: p.Name, dtype: "F32", param: p.Row, width: p.Width, shape: p.Shape, row: p.Row, rows: p.Width}
		if c.Mixed && p.Half {
			j := f.param - layout.RowSh
			f.dtype, f.row, f.half, f.step = "F16", layout.RowSh+j/2, j%2, 1
			f.rows = (f.half + f.width + 1) / 2
		}
		list = append(list, f)
	}
	return list
}

// splatFields lists the tensors of a model in the order of the file: parameters, first moments, second moments,
// statistics.
func splatFields(c layout.Rows) []field {
	params := paramFields(c)
	list := params
	for lane, prefix := range []string{"adam_m_", "adam_v_"} {
		for _, f := range params {
			f.name, f.dtype, f.rows = prefix+f.name, "F32", f.width
			f.row = []int{c.First, c.Second}[lane] + f.param
			if c.Mixed {
				f.dtype, f.half, f.step = "BF16", lane, 2
			}
			list = append(list, f)
		}
	}
	for i, name := range statNames {
		list = append(list, field{name: name, dtype: "F32", width: 1, row: c.Stats + i, rows: 1})
	}
	return list
}

// tensorOf describes a field of n splats.
func (f field) tensorOf(n int) safetensors.TensorInfo {
	return safetensors.TensorInfo{Name: f.name, DType: f.dtype, Shape: append([]int{n}, f.shape...)}
}

// bytes returns the size of a number in the file.
func (f field) bytes() int {
	if f.dtype == "F32" {
		return 4
	}
	return 2
}

// gather writes count splats to dst, as the file has them, from the field's rows, which are stride words apart.
func (f field) gather(dst, rows []byte, count, stride int) {
	if f.dtype == "F32" {
		interleave(dst, rows, f.width, count, stride)
		return
	}
	transposeParts(count, func(lo, hi int) {
		for k := range f.width {
			from := f.halves(rows, k, stride)
			for i := lo; i < hi; i++ {
				binary.LittleEndian.PutUint16(dst[2*(i*f.width+k):], binary.LittleEndian.Uint16(from[4*i:]))
			}
		}
	})
}

// scatter is the way back. Halves of words that are another field's stay as they are.
func (f field) scatter(rows, src []byte, count, stride int) {
	if f.dtype == "F32" {
		deinterleave(rows, src, f.width, count, stride)
		return
	}
	transposeParts(count, func(lo, hi int) {
		for k := range f.width {
			to := f.halves(rows, k, stride)
			for i := lo; i < hi; i++ {
				binary.LittleEndian.PutUint16(to[4*i:], binary.LittleEndian.Uint16(src[2*(i*f.width+k):]))
			}
		}
	})
}

// halves returns the bytes from where number k of the first splat is; every fourth is a splat's.
func (f field) halves(rows []byte, k, stride int) []byte {
	h := f.half + k*f.step
	return rows[4*(h/2)*stride+2*(h%2):]
}
