package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// layoutGo prints the rows, and what changes them, for the package of shared constants.
func (m *model) layoutGo() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(modelHeader + "\npackage layout\n\n")
	b.WriteString("// Rows of parameters in a chunk; those from RowSh on are spherical harmonics.\nconst (\n")
	for _, t := range m.geometry {
		fmt.Fprintf(&b, "%s = %d\n", camel(t.constant()), t.row)
	}
	fmt.Fprintf(&b, "RowSh = %d\n)\n\n", m.rowSH())
	b.WriteString("// Change is what sets parameters to something else than a copy, beside Adam.\ntype Change uint\n\nconst (\n")
	for i, name := range changeNames {
		if fmt.Fprintf(&b, "%s", camel("change_"+name)); i == 0 {
			b.WriteString(" Change = 1 << iota")
		}
		b.WriteString("\n")
	}
	b.WriteString(")\n\n// Changed reports whether c sets the parameter of a row.\nfunc Changed(row int, c Change) bool {\nswitch {\n")
	for _, t := range m.geometry {
		fmt.Fprintf(&b, "case row < %d:\nreturn %s\n", t.row+t.width, t.changed())
	}
	fmt.Fprintf(&b, "}\nreturn %s\n}\n", m.sh[0].changed())
	return gofmt("model_gen.go", &b)
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
func (m *model) fields(b *bytes.Buffer, elem string) {
	for _, t := range m.geometry {
		n := "N"
		if t.width > 1 {
			n = fmt.Sprintf("N*%d", t.width)
		}
		fmt.Fprintf(b, "%s []%s // [%s] %s\n", t.goName(), elem, n, t.doc)
	}
	fmt.Fprintf(b, "SH []%s // [N*K*3] coefficient-major: coefficient k of channel c of splat i is SH[(i*K+k)*3+c]\n", elem)
}

// arrays prints the method that lists the arrays of a model, given the type of an entry.
func (m *model) arrays(b *bytes.Buffer, receiver, entry, coefficients string) {
	name, _, _ := strings.Cut(entry, "[")
	fmt.Fprintf(b, "// %ss is how many arrays a model has.\nconst %[1]ss = %d\n\n", name, len(m.geometry)+1)
	fmt.Fprintf(b, "// arrays lists the arrays in the order of their rows.\n")
	fmt.Fprintf(b, "func (%[1]s) arrays() [%[2]ss]%[3]s {\nreturn [%[2]ss]%[3]s{\n", receiver, name, entry)
	receiver = receiver[:1]
	for _, t := range m.geometry {
		fmt.Fprintf(b, "{%q, %d, &%s.%s},\n", t.name, t.width, receiver, t.goName())
	}
	fmt.Fprintf(b, "{\"sh\", 3 * %s.%s(), &%s.SH},\n}\n}\n\n", receiver, coefficients, receiver)
}

// sceneGo prints the model of package scene.
func (m *model) sceneGo() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(modelHeader + "\npackage scene\n\n")
	b.WriteString("// Splats is a model on the host: N splats, interleaved per splat. Values are\n// raw, as the optimiser holds them; activations are applied by the renderer.\n")
	b.WriteString("type Splats struct {\nN int // number of splats\nDegree int // degree of the spherical harmonics, 0 to MaxSHDegree\n\n")
	m.fields(&b, "float32")
	b.WriteString("}\n\n")
	m.arrays(&b, "s *Splats", "splatArray", "K")
	fmt.Fprintf(&b, "// geometryNumbers is how many numbers a splat has beside its spherical harmonics.\nconst geometryNumbers = %d\n\n", m.rowSH())
	b.WriteString("// SplatParts lists the tensors of a model of an SH degree as checkpoints have them, in their order.\n")
	b.WriteString("func SplatParts(degree int) []SplatPart {\nlist := []SplatPart{\n")
	for i, t := range m.geometry {
		fmt.Fprintf(&b, "{Name: %q, Activation: %q, Row: %d, Width: %d, array: %d", t.name, t.activation, t.row, t.width, i)
		if t.width > 1 {
			fmt.Fprintf(&b, ", Shape: []int{%d}", t.width)
		}
		b.WriteString("},\n")
	}
	sh0, rest, array := m.sh[0], m.sh[1], len(m.geometry)
	fmt.Fprintf(&b, "{Name: %q, Activation: %q, Row: %d, Width: 3, array: %d, Shape: []int{1, 3}, Half: %v},\n}\n", sh0.name, sh0.activation, sh0.row, array, sh0.half)
	fmt.Fprintf(&b, "if k := SHCoefficients(degree) - 1; k > 0 {\nlist = append(list, SplatPart{\nName: %q, Activation: %q, Row: %d, Width: 3 * k, array: %d, from: 3, Shape: []int{k, 3}, Half: %v,\n})\n}\nreturn list\n}\n",
		rest.name, rest.activation, rest.row, array, rest.half)
	return gofmt("splats_gen.go", &b)
}

// refGo prints the parameters of the twins.
func (m *model) refGo() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(modelHeader + "\npackage ref\n\nimport \"vksplat/shaders/layout\"\n\n")
	b.WriteString("// Params holds one value per parameter of a model: the parameters themselves, a moment of each, or a gradient of each.\ntype Params[T Real] struct {\nN int // splats\nDegree int // of the stored spherical harmonics, 0 to 3\n\n")
	m.fields(&b, "T")
	b.WriteString("}\n\n")
	m.arrays(&b, "p *Params[T]", "paramArray[T]", "Coefficients")
	b.WriteString("// At returns where row r of splat i is.\nfunc (p *Params[T]) At(r, i int) *T {\nswitch {\n")
	for _, t := range m.geometry {
		index := "i"
		if t.width > 1 {
			index = fmt.Sprintf("%d*i+r", t.width)
			if t.row > 0 {
				index += fmt.Sprintf("-%d", t.row)
			}
		}
		fmt.Fprintf(&b, "case r < %d:\nreturn &p.%s[%s]\n", t.row+t.width, t.goName(), index)
	}
	fmt.Fprintf(&b, "}\nreturn &p.SH[3*p.Coefficients()*i+r-%d]\n}\n\n", m.rowSH())
	var names, rates, puts []string
	for i, t := range m.all() {
		first := slices.IndexFunc(m.all(), func(o modelTensor) bool { return o.rate == t.rate })
		names = append(names, m.all()[first].goName())
		if first == i {
			rates = append(rates, t.goName())
			puts = append(puts, fmt.Sprintf("p.%s = float32(r.%s)\n", camel(t.rate), t.goName()))
		}
	}
	fmt.Fprintf(&b, "// Rates are the learning rates of one step. Tensors may share one.\ntype Rates struct {\n%s float64\n}\n\n", strings.Join(rates, ", "))
	fmt.Fprintf(&b, "// geometry lists the rates of the arrays before SH.\nfunc (r Rates) geometry() [%d]float64 {\nreturn [%d]float64{r.%s}\n}\n\n",
		len(m.geometry), len(m.geometry), strings.Join(names[:len(m.geometry)], ", r."))
	fmt.Fprintf(&b, "// Put sets the rates in the parameters of the kernels.\nfunc (r Rates) Put(p *layout.StepParams) {\n%s}\n", strings.Join(puts, ""))
	return gofmt("params_gen.go", &b)
}
