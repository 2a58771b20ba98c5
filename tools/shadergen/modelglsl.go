package main

import (
	"bytes"
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
	for name, emit := range map[string]func(b *bytes.Buffer){
		"model_rows": m.rowsGLSL, "geometry": m.geometryGLSL, "adam_geometry": m.adamGLSL, "moment_words": m.wordsGLSL,
	} {
		var b bytes.Buffer
		b.WriteString(modelHeader)
		guard := strings.ToUpper(name) + "_GLSL"
		emit(&b)
		text := strings.Replace(b.String(), "\n\n", fmt.Sprintf("\n#ifndef %s\n#define %s\n\n", guard, guard), 1)
		out[modelFolder+name+".glsl"] = []byte(text + "\n#endif\n")
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

func (m *model) rowsGLSL(b *bytes.Buffer) {
	b.WriteString("// Rows of parameters in a chunk: const.glsl.\n\n")
	for _, t := range m.geometry {
		fmt.Fprintf(b, "const uint %s = %du;\n", t.constant(), t.row)
	}
	fmt.Fprintf(b, "const uint ROW_SH = %du;\n", m.rowSH())
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

// parts divides a tensor.
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

func (m *model) geometryGLSL(b *bytes.Buffer) {
	b.WriteString("// The parameters of a splat that are not SH coefficients, or as many gradients or moments. The includer\n")
	b.WriteString("// declares row(), row3() and put().\n\nstruct Geometry {\n")
	for _, t := range m.geometry {
		fmt.Fprintf(b, "    %s %s;\n", t.vector(), t.member)
	}
	b.WriteString("};\n\n")
	list := func(of func(t modelTensor) string) string {
		var all []string
		for _, t := range m.geometry {
			all = append(all, of(t))
		}
		return strings.Join(all, ", ")
	}
	zero := list(func(t modelTensor) string {
		if t.width == 1 {
			return "0.0"
		}
		return t.vector() + "(0.0)"
	})
	fmt.Fprintf(b, "Geometry no_geometry() { return Geometry(%s); }\n\n", zero)
	b.WriteString("// Rows r to r + ROW_SH - 1.\nGeometry load_geometry(uint r, uint i) {\n")
	for _, t := range m.geometry { // what is loaded in parts comes first
		if len(t.parts()) > 1 {
			fmt.Fprintf(b, "    %s %s = %s;\n", t.vector(), t.member, t.load())
		}
	}
	fmt.Fprintf(b, "    return Geometry(%s);\n}\n\n", list(func(t modelTensor) string {
		if len(t.parts()) > 1 {
			return t.member
		}
		return t.load()
	}))
	b.WriteString("void put3(uint r, uint i, vec3 x) {\n    put(r, i, x.x);\n    put(r + 1u, i, x.y);\n    put(r + 2u, i, x.z);\n}\n\n")
	b.WriteString("void put_geometry(uint r, uint i, Geometry x) {\n")
	for _, t := range m.geometry {
		for _, p := range t.parts() {
			put := "put"
			if p.three {
				put = "put3"
			}
			fmt.Fprintf(b, "    %s(%s, i, x.%s%s);\n", put, t.at("r + ", p.first), t.member, p.suffix)
		}
	}
	b.WriteString("}\n")
	for _, f := range []struct{ doc, name, op string }{{"Adds b to a.", "add_geometry", "+="}, {"Takes b from a.", "subtract_geometry", "-="}} {
		fmt.Fprintf(b, "\n// %s\nvoid %s(inout Geometry a, Geometry b) {\n", f.doc, f.name)
		for _, t := range m.geometry {
			fmt.Fprintf(b, "    a.%s %s b.%s;\n", t.member, f.op, t.member)
		}
		b.WriteString("}\n")
	}
	fmt.Fprintf(b, "\nGeometry scaled_geometry(float s, Geometry x) {\n    return Geometry(%s);\n}\n",
		list(func(t modelTensor) string { return "s * x." + t.member }))
}

func (m *model) adamGLSL(b *bytes.Buffer) {
	b.WriteString("// Adam for the geometry of a splat, with the learning rates of its tensors. The includer declares adam() and params.\n\n")
	b.WriteString("// Steps the moments and returns what to subtract from the geometry.\n")
	b.WriteString("Geometry adam_geometry(inout Geometry m, inout Geometry v, Geometry g) {\n    Geometry d;\n")
	for _, t := range m.geometry {
		fmt.Fprintf(b, "    d.%[1]s = adam(m.%[1]s, v.%[1]s, g.%[1]s, params[0].%[2]s);\n", t.member, t.rate)
	}
	b.WriteString("    return d;\n}\n")
}

// word is the name of a part's moments in a struct of words.
func (p part) word() string {
	if p.first == 0 {
		return p.member
	}
	return p.member + "_" + strings.TrimPrefix(p.suffix, ".")
}

func (m *model) wordsGLSL(b *bytes.Buffer) {
	b.WriteString("// The moments of a splat's geometry in mixed precision, a first and a second one to a word: mixed.glsl. The includer\n")
	b.WriteString("// declares load_word(), load_words(), put(), put_words() and adam() of words.\n\n")
	var threes, ones, all []part
	for _, t := range m.geometry {
		for _, p := range t.parts() {
			if all = append(all, p); p.three {
				threes = append(threes, p)
			} else {
				ones = append(ones, p)
			}
		}
	}
	var loads []string
	b.WriteString("struct Moments {\n")
	for _, group := range []struct {
		parts      []part
		word, load string
	}{{threes, "uvec3", "load_words"}, {ones, "uint", "load_word"}} {
		var names []string
		for _, p := range group.parts {
			names = append(names, p.word())
			loads = append(loads, fmt.Sprintf("%s(%s, i)", group.load, p.at("t + ", p.first)))
		}
		if names != nil {
			fmt.Fprintf(b, "    %s %s;\n", group.word, strings.Join(names, ", "))
		}
	}
	b.WriteString("};\n\n// t is the first row of moments.\nMoments load_moment_words(uint t, uint i) {\n    return Moments(")
	b.WriteString(strings.Join(loads, ",\n                   ") + ");\n}\n\n")
	b.WriteString("// Steps the moments and returns what to subtract from the geometry.\nGeometry adam_words(inout Moments m, Geometry g) {\n    Geometry d;\n")
	for _, p := range all {
		fmt.Fprintf(b, "    d.%[1]s%[2]s = adam(m.%[3]s, %[4]s, g.%[1]s%[2]s, params[0].%[5]s);\n", p.member, p.suffix, p.word(), p.at("", p.first), p.rate)
	}
	b.WriteString("    return d;\n}\n\nvoid put_moment_words(uint t, uint i, Moments m) {\n")
	for _, p := range all {
		if p.three {
			fmt.Fprintf(b, "    put_words(%s, i, m.%s);\n", p.at("t + ", p.first), p.word())
		} else {
			fmt.Fprintf(b, "    put_word(%s, i, m.%s);\n", p.at("t + ", p.first), p.word())
		}
	}
	b.WriteString("}\n")
}
