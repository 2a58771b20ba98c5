package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// modelFolder holds the GLSL that is printed from model.schema. The compiler reads a fresh copy, not the committed one.
const modelFolder = "shaders/model/"

// glsl prints the files of modelFolder.
func (m *model) glsl() outputs {
	out := outputs{}
	for _, f := range []struct {
		name string
		emit func(p *printer)
		doc  []string
	}{
		{"model_rows", m.rowsGLSL, []string{"Rows of parameters in a chunk: const.glsl."}},
		{"geometry", m.geometryGLSL, []string{
			"The parameters of a splat that are not SH coefficients, or as many gradients or moments. The includer " +
				"declares",
			"row(), row3() and put().",
		}},
		{"adam_geometry", m.adamGLSL, []string{
			"Adam for the geometry of a splat, with the learning rates of its tensors. The includer declares adam() " +
				"and params.",
		}},
		{"moment_words", m.wordsGLSL, []string{
			"The moments of a splat's geometry in mixed precision, a first and a second one to a word: mixed.glsl. " +
				"The includer",
			"declares load_word(), load_words(), put_word(), put_words() and adam() of words.",
		}},
	} {
		var p printer
		p.WriteString(modelHeader)
		for _, line := range f.doc {
			p.line("// %s", line)
		}
		guard := strings.ToUpper(f.name) + "_GLSL"
		p.line("#ifndef %s", guard)
		p.line("#define %s\n", guard)
		f.emit(&p)
		p.line("\n#endif")
		out[modelFolder+f.name+".glsl"] = p.Bytes()
	}
	return out
}

// includes is where the compiler finds them, given the folder of a run.
func includes(tmp string) string { return filepath.Join(tmp, "include") }

// writeIncludes writes the GLSL among what was printed to where the compiler finds it.
func writeIncludes(printed outputs, tmp string) error {
	if err := os.Mkdir(includes(tmp), 0o755); err != nil {
		return err
	}
	for rel, text := range printed {
		if name, ok := strings.CutPrefix(rel, modelFolder); ok {
			if err := os.WriteFile(filepath.Join(includes(tmp), name), text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *model) rowsGLSL(p *printer) {
	for _, t := range m.geometry {
		p.line("const uint %s = %du;", t.constant(), t.row)
	}
	p.line("const uint ROW_SH = %du;", m.rowSH())
}

func (t modelTensor) vector() string { return [...]string{"float", "vec2", "vec3", "vec4"}[t.width-1] }

// at is the tensor's row k, counted from a first row.
func (t modelTensor) at(base string, k int) string {
	s := base + t.constant()
	if k > 0 {
		s += fmt.Sprintf(" + %du", k)
	}
	return s
}

// part is some numbers of a tensor that kernels move at once: three, or one.
type part struct {
	modelTensor
	first  int
	three  bool
	suffix string // of the member: what of it the part is
}

func (t modelTensor) parts() (list []part) {
	if t.width >= 3 {
		suffix := ""
		if t.width > 3 {
			suffix = ".xyz"
		}
		list = append(list, part{t, 0, true, suffix})
	}
	for k := t.width / 3 * 3; k < t.width; k++ {
		suffix := ""
		if t.width > 1 {
			suffix = "." + "xyzw"[k:k+1]
		}
		list = append(list, part{t, k, false, suffix})
	}
	return list
}

// load is the expression of the tensor's value.
func (t modelTensor) load() string {
	var args []string
	for _, p := range t.parts() {
		of := "row"
		if p.three {
			of = "row3"
		}
		args = append(args, fmt.Sprintf("%s(%s, i)", of, t.at("r + ", p.first)))
	}
	if len(args) == 1 {
		return args[0]
	}
	return t.vector() + "(" + strings.Join(args, ", ") + ")"
}

// list joins an expression of every tensor of the geometry.
func (m *model) list(of func(t modelTensor) string) string {
	var all []string
	for _, t := range m.geometry {
		all = append(all, of(t))
	}
	return strings.Join(all, ", ")
}

func (m *model) geometryGLSL(p *printer) {
	p.line("struct Geometry {")
	for _, t := range m.geometry {
		p.line("    %s %s;", t.vector(), t.member)
	}
	p.line("};\n")
	p.line("Geometry no_geometry() { return Geometry(%s); }\n", m.list(func(t modelTensor) string {
		if t.width == 1 {
			return "0.0"
		}
		return t.vector() + "(0.0)"
	}))
	m.moveGLSL(p)
	for _, f := range []struct{ doc, name, op string }{
		{"Adds b to a.", "add_geometry", "+="}, {"Takes b from a.", "subtract_geometry", "-="},
	} {
		p.line("\n// %s", f.doc)
		p.line("void %s(inout Geometry a, Geometry b) {", f.name)
		for _, t := range m.geometry {
			p.line("    a.%s %s b.%s;", t.member, f.op, t.member)
		}
		p.line("}")
	}
	p.line("\nGeometry scaled_geometry(float s, Geometry x) {")
	p.line("    return Geometry(%s);", m.list(func(t modelTensor) string { return "s * x." + t.member }))
	p.line("}")
}

// moveGLSL prints how a geometry is loaded and stored.
func (m *model) moveGLSL(p *printer) {
	p.line("// Rows r to r + ROW_SH - 1.")
	p.line("Geometry load_geometry(uint r, uint i) {")
	for _, t := range m.geometry { // what is loaded in parts comes first
		if len(t.parts()) > 1 {
			p.line("    %s %s = %s;", t.vector(), t.member, t.load())
		}
	}
	p.line("    return Geometry(%s);", m.list(func(t modelTensor) string {
		if len(t.parts()) > 1 {
			return t.member
		}
		return t.load()
	}))
	p.line("}\n")
	p.line("void put3(uint r, uint i, vec3 x) {")
	p.line("    put(r, i, x.x);")
	p.line("    put(r + 1u, i, x.y);")
	p.line("    put(r + 2u, i, x.z);")
	p.line("}\n")
	p.line("void put_geometry(uint r, uint i, Geometry x) {")
	for _, t := range m.geometry {
		for _, part := range t.parts() {
			put := "put"
			if part.three {
				put = "put3"
			}
			p.line("    %s(%s, i, x.%s%s);", put, t.at("r + ", part.first), t.member, part.suffix)
		}
	}
	p.line("}")
}

func (m *model) adamGLSL(p *printer) {
	p.line("// Steps the moments and returns what to subtract from the geometry.")
	p.line("Geometry adam_geometry(inout Geometry m, inout Geometry v, Geometry g) {")
	p.line("    Geometry d;")
	for _, t := range m.geometry {
		p.line("    d.%[1]s = adam(m.%[1]s, v.%[1]s, g.%[1]s, params[0].%[2]s);", t.member, t.rate)
	}
	p.line("    return d;")
	p.line("}")
}

// word is the name of a part's moments in a struct of words.
func (p part) word() string {
	if p.first == 0 {
		return p.member
	}
	return p.member + "_" + strings.TrimPrefix(p.suffix, ".")
}

func (m *model) wordsGLSL(p *printer) {
	var threes, ones, all []part
	for _, t := range m.geometry {
		for _, part := range t.parts() {
			if all = append(all, part); part.three {
				threes = append(threes, part)
			} else {
				ones = append(ones, part)
			}
		}
	}
	var loads []string
	p.line("struct Moments {")
	for _, group := range []struct {
		parts      []part
		word, load string
	}{{threes, "uvec3", "load_words"}, {ones, "uint", "load_word"}} {
		for _, part := range group.parts {
			p.line("    %s %s;", group.word, part.word())
			loads = append(loads, fmt.Sprintf("%s(%s, i)", group.load, part.at("t + ", part.first)))
		}
	}
	p.line("};\n")
	p.line("// t is the first row of moments.")
	p.line("Moments load_moment_words(uint t, uint i) {")
	p.line("    return Moments(%s);", strings.Join(loads, ",\n                   "))
	p.line("}\n")
	p.line("// Steps the moments and returns what to subtract from the geometry.")
	p.line("Geometry adam_words(inout Moments m, Geometry g) {")
	p.line("    Geometry d;")
	for _, part := range all {
		member := part.member + part.suffix
		row := part.at("", part.first)
		p.line("    d.%s = adam(m.%s, %s, g.%s, params[0].%s);", member, part.word(), row, member, part.rate)
	}
	p.line("    return d;")
	p.line("}\n")
	p.line("void put_moment_words(uint t, uint i, Moments m) {")
	for _, part := range all {
		put := "put_word"
		if part.three {
			put = "put_words"
		}
		p.line("    %s(%s, i, m.%s);", put, part.at("t + ", part.first), part.word())
	}
	p.line("}")
}
