package main

import (
	"fmt"
	"slices"
	"strings"
)

// layoutGo prints the rows, and what changes them, for the package of shared constants.
func (m *model) layoutGo() ([]byte, error) {
	var p printer
	p.line(modelHeader)
	p.line("package layout\n")
	p.line("// Rows of parameters in a chunk; those from RowSh on are spherical harmonics.")
	p.line("const (")
	for _, t := range m.geometry {
		p.line("%s = %d", camel(t.constant()), t.row)
	}
	p.line("RowSh = %d", m.rowSH())
	p.line(")\n")
	p.line("// Change is what sets parameters to something else than a copy, beside Adam.")
	p.line("type Change uint\n")
	p.line("const (")
	for i, name := range changeNames {
		value := ""
		if i == 0 {
			value = " Change = 1 << iota"
		}
		p.line("%s%s", camel("change_"+name), value)
	}
	p.line(")\n")
	p.line("// Changed reports whether c sets the parameter of a row.")
	p.line("func Changed(row int, c Change) bool {")
	p.line("switch {")
	for _, t := range m.geometry {
		p.line("case row < %d:", t.row+t.width)
		p.line("return %s", t.changed())
	}
	p.line("}")
	p.line("return %s", m.sh[0].changed())
	p.line("}\n")
	p.line("// Drawn reports whether renderers need the parameter of a row.")
	p.line("func Drawn(row int) bool {")
	for _, t := range m.geometry {
		if !t.drawn {
			p.line("if %d <= row && row < %d {", t.row, t.row+t.width)
			p.line("return false // %s", t.name)
			p.line("}")
		}
	}
	p.line("return true")
	p.line("}")
	return gofmt("model_gen.go", &p.Buffer)
}

// changed is whether a change c sets the tensor, in Go.
func (t modelTensor) changed() string {
	var names []string
	for _, c := range t.changes {
		names = append(names, camel("change_"+c))
	}
	if names == nil {
		return "false"
	}
	return "c&(" + strings.Join(names, "|") + ") != 0"
}

// fields prints the fields that hold the arrays of a model.
func (m *model) fields(p *printer, elem string) {
	for _, t := range m.geometry {
		shape := "N"
		if t.width > 1 {
			shape = "N*" + string('0'+rune(t.width))
		}
		p.line("%s []%s // [%s] %s", t.goName(), elem, shape, t.doc)
	}
	p.line("// Coefficient-major: coefficient k of channel c of splat i is SH[(i*K+k)*3+c].")
	p.line("SH []%s // [N*K*3]", elem)
}

// arrayLists prints the methods that list the arrays of a model, as places and as values, which may say whether they
// are drawn.
func (m *model) arrayLists(p *printer, receiver, place, value, coefficients string, drawn bool) {
	name, _, _ := strings.Cut(place, "[")
	p.line("// %ss is how many arrays a model has.", name)
	p.line("const %ss = %d\n", name, len(m.geometry)+1)
	for _, f := range []struct {
		doc, method, entry, ref string
		drawn                   bool
	}{
		{"arrays lists where the arrays are, in the order of their rows.", "arrays", place, "&", false},
		{"Tensors lists the arrays, not copies, in the order of their rows.", "Tensors", value, "", drawn},
	} {
		last := func(t modelTensor) string {
			if f.drawn {
				return fmt.Sprintf(", %t", t.drawn)
			}
			return ""
		}
		p.line("// %s", f.doc)
		p.line("func (%s) %s() [%ss]%s {", receiver, f.method, name, f.entry)
		p.line("return [%ss]%s{", name, f.entry)
		of := f.ref + receiver[:1]
		for _, t := range m.geometry {
			p.line("{%q, %d, %s.%s%s},", t.name, t.width, of, t.goName(), last(t))
		}
		p.line(`{"sh", 3 * %s.%s(), %s.SH%s},`, receiver[:1], coefficients, of, last(m.sh[0]))
		p.line("}")
		p.line("}\n")
	}
}

func (m *model) sceneGo() ([]byte, error) {
	var p printer
	p.line(modelHeader)
	p.line("package scene\n")
	p.line("// Splats is a model on the host: N splats, interleaved per splat. Values are raw, as the optimiser " +
		"holds them;")
	p.line("// the renderer applies activations.")
	p.line("type Splats struct {")
	p.line("N int // number of splats")
	p.line("Degree int // degree of the spherical harmonics, 0 to MaxSHDegree\n")
	m.fields(&p, "float32")
	p.line("}\n")
	m.arrayLists(&p, "s *Splats", "splatArray", "SplatTensor", "K", true)
	p.line("// geometryNumbers is how many numbers a splat has beside its spherical harmonics.")
	p.line("const geometryNumbers = %d\n", m.rowSH())
	p.line("// SplatParts lists the tensors of a model of an SH degree as checkpoints have them, in their order.")
	p.line("func SplatParts(degree int) []SplatPart {")
	p.line("list := []SplatPart{")
	for i, t := range m.geometry {
		shape := ""
		if t.width > 1 {
			shape = ", Shape: []int{" + string('0'+rune(t.width)) + "}"
		}
		p.line("{Name: %q, Activation: %q, Row: %d, Width: %d, array: %d%s},", t.name, t.activation, t.row, t.width, i,
			shape)
	}
	sh0, rest, array := m.sh[0], m.sh[1], len(m.geometry)
	p.line("{Name: %q, Activation: %q, Row: %d, Width: 3, array: %d, Shape: []int{1, 3}, Half: true},",
		sh0.name, sh0.activation, sh0.row, array)
	p.line("}")
	p.line("if k := SHCoefficients(degree) - 1; k > 0 {")
	p.line("list = append(list, SplatPart{")
	p.line("Name: %q, Activation: %q, Row: %d, Width: 3 * k,", rest.name, rest.activation, rest.row)
	p.line("array: %d, from: 3, Shape: []int{k, 3}, Half: true,", array)
	p.line("})")
	p.line("}")
	p.line("return list")
	p.line("}")
	return gofmt("splats_gen.go", &p.Buffer)
}

// refGo prints the parameters of the twins.
func (m *model) refGo() ([]byte, error) {
	var p printer
	p.line(modelHeader)
	p.line("package ref\n")
	p.line(`import "vksplat/shaders/layout"` + "\n")
	p.line("// Params holds one value per parameter of a model: the parameters, a moment of each, or a gradient of " +
		"each.")
	p.line("type Params[T Real] struct {")
	p.line("N int // splats")
	p.line("Degree int // of the stored spherical harmonics, 0 to 3\n")
	m.fields(&p, "T")
	p.line("}\n")
	m.arrayLists(&p, "p *Params[T]", "paramArray[T]", "Tensor[T]", "Coefficients", false)
	p.line("// At returns where row r of splat i is.")
	p.line("func (p *Params[T]) At(r, i int) *T {")
	p.line("switch {")
	for _, t := range m.geometry {
		p.line("case r < %d:", t.row+t.width)
		index := fmt.Sprintf("%d*i+r-%d", t.width, t.row)
		p.line("return &p.%s[%s]", t.goName(), strings.TrimSuffix(index, "-0"))
	}
	p.line("}")
	p.line("return &p.SH[3*p.Coefficients()*i+r-%d]", m.rowSH())
	p.line("}\n")
	m.rates(&p)
	return gofmt("params_gen.go", &p.Buffer)
}

// rates prints the learning rates of the twins: a field for each that the schema names, called after its first tensor.
func (m *model) rates(p *printer) {
	var of []string // by tensor
	var fields, puts []string
	for i, t := range m.all() {
		first := slices.IndexFunc(m.all(), func(o modelTensor) bool { return o.rate == t.rate })
		of = append(of, "r."+m.all()[first].goName())
		if first == i {
			fields = append(fields, t.goName())
			puts = append(puts, "p."+camel(t.rate)+" = float32(r."+t.goName()+")")
		}
	}
	n := len(m.geometry)
	p.line("// Rates are the learning rates of one step. Tensors may share one.")
	p.line("type Rates struct {")
	p.line("%s float64", strings.Join(fields, ", "))
	p.line("}\n")
	p.line("// geometry lists the rates of the arrays before SH.")
	p.line("func (r Rates) geometry() [%d]float64 {", n)
	p.line("return [%d]float64{%s}", n, strings.Join(of[:n], ", "))
	p.line("}\n")
	p.line("// All lists where the rates are.")
	p.line("func (r *Rates) All() []*float64 {")
	p.line("return []*float64{&r.%s}", strings.Join(fields, ", &r."))
	p.line("}\n")
	p.line("// Put sets the rates in the parameters of the kernels.")
	p.line("func (r Rates) Put(p *layout.StepParams) {")
	p.line("%s", strings.Join(puts, "\n"))
	p.line("}")
}
