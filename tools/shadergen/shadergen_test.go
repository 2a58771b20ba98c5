package main

import (
	"bytes"
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

var update = flag.Bool("update", false, "rewrite testdata/want")

func needTools(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"glslc", "spirv-opt", "spirv-val"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
}

// repository makes a module with the given shaders (path below shaders/ -> text) and a stand-in for vk.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	all := map[string]string{"go.mod": "module vksplat\n\ngo 1.26\n", "shaders/gen.go": "package shaders\n"}
	for from, to := range map[string]string{"vk.go.txt": "vk/vk.go", "use_test.go.txt": "shaders/use_test.go"} {
		text := must.Get(os.ReadFile(filepath.Join("testdata", "stub", from)))(t)
		all[to] = string(text)
	}
	for name, text := range files {
		all["shaders/"+name] = text
	}
	for name, text := range all {
		path := filepath.Join(root, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return root
}

func goodShaders(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range []string{"testdata/good/*.comp", "testdata/good/shared/*.glsl"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, f := range found {
			text := must.Get(os.ReadFile(f))(t)
			rel, _ := filepath.Rel("testdata/good", f)
			files[filepath.ToSlash(rel)] = string(text)
		}
	}
	return files
}

// TestGenerate builds twice (same bytes), compares the Go text with testdata/want, and runs a test against the result.
func TestGenerate(t *testing.T) {
	needTools(t)
	root := repository(t, goodShaders(t))
	out, kernels, err := build(root)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := build(root)
	if err != nil || !maps.EqualFunc(out, again, bytes.Equal) {
		t.Errorf("a second build differs (error %v)", err)
	}
	for rel, content := range out {
		if !strings.HasSuffix(rel, ".go") {
			continue
		}
		want := filepath.Join("testdata", "want", strings.ReplaceAll(rel, "/", "-")+".txt")
		if *update {
			must.Do(t, os.WriteFile(want, content, 0o644))
		}
		if text, err := os.ReadFile(want); err != nil || !bytes.Equal(text, content) {
			t.Errorf("%s differs from %s (error %v); go test -update rewrites it. Got:\n%s", rel, want, err, content)
		}
	}
	var notes []string
	for _, k := range kernels {
		notes = append(notes, k.notes...)
	}
	if text := strings.Join(notes, "\n"); len(notes) != 2 || !strings.Contains(text, "UNUSED") ||
		!strings.Contains(text, "binding 2 (scratch): never read") {
		t.Errorf("notes: %s", text)
	}
	must.Do(t, write(root, out))
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./shaders"}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = root
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %v: %v\n%s", args, err, text)
		}
	}
}

// TestCases lists what returns cases, wherever it stands, and nothing else.
func TestCases(t *testing.T) {
	root, out := repository(t, map[string]string{
		"../pipeline/check/a.go": "package check\n\nfunc fillCases() []Case {\n}\n\nfunc casesOf(k string) []Case {\n",
		"../pipeline/check/b.go": "package check\n\nfunc scanCases() []Case {\n}\n\nfunc Cases() []Case {\n",
	}), outputs{}
	must.Do(t, out.addCases(root))
	if got := string(out["pipeline/check/tables_gen.go"]); !strings.HasSuffix(got, "{\n\tfillCases,\n\tscanCases,\n}\n") {
		t.Errorf("got %s", got)
	}
	must.Do(t, outputs{}.addCases(t.TempDir()))
}

// TestCheck plays the ways in which committed files drift from their sources.
func TestCheck(t *testing.T) {
	needTools(t)
	root := repository(t, goodShaders(t))
	out, _, err := build(root)
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, write(root, out))
	if err := compare(root, out, io.Discard); err != nil {
		t.Fatalf("fresh files: %v", err)
	}
	edit := func(rel, text string) {
		must.Do(t, os.WriteFile(filepath.Join(root, rel), []byte(text), 0o644))
	}
	expect := func(want ...string) {
		t.Helper()
		err := compare(root, out, io.Discard)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("error %v does not name %s", err, w)
			}
		}
	}
	edit("shaders/gone_gen.go", "package shaders\n")
	edit("shaders/spv/clear.spv", "x")
	must.Do(t, os.Remove(filepath.Join(root, "shaders/integrate_gen.go")))
	expect("shaders/gone_gen.go (no kernel makes it)", "shaders/spv/clear.spv", "shaders/integrate_gen.go (missing)")
	must.Do(t, write(root, out))
	expect()
	if err := compare(root, out, io.Discard); err != nil {
		t.Errorf("after writing again: %v", err)
	}
	// With another compiler the SPIR-V may differ, the Go must not.
	edit(toolsFile, "glslc:\n    another\n")
	edit("shaders/spv/clear.spv", "x")
	var said bytes.Buffer
	if err := compare(root, out, &said); err != nil || !strings.Contains(said.String(), "only the Go files") {
		t.Errorf("other tools: error %v, said %q", err, said.String())
	}
	edit("shaders/clear_gen.go", "package shaders\n")
	expect("shaders/clear_gen.go")
}

const prologue = "#version 460\n#extension GL_EXT_scalar_block_layout : require\n#extension " +
	"GL_GOOGLE_include_directive : require\n"

// TestRefused holds one kernel per mistake and what the message must say.
func TestRefused(t *testing.T) {
	needTools(t)
	size := "layout(local_size_x = 64) in;\n"
	outBuf := "layout(binding = 0, scalar) writeonly buffer Out { uint data[]; };\n"
	cases := []struct {
		name, text string
		want       []string
	}{
		{"syntax", prologue + size + "void main() { x }", []string{"glslc", "'x'"}},
		{"dead", prologue + size + outBuf +
			"layout(binding = 1, scalar) readonly buffer In { uint ins[]; };\nvoid main() { uint unused = ins[0]; " +
			"data[0] = 1; }",
			[]string{"binding 1 (ins)", "dead binding", "delete its declaration"}},
		{"never", prologue + size + outBuf +
			"layout(binding = 1, scalar) readonly buffer In { uint ins[]; };\nvoid main() { data[0] = 1; }",
			[]string{"binding 1", "delete its declaration"}},
		{"push", prologue + size + outBuf +
			"layout(push_constant, scalar) uniform Push { uint a[33]; } pc;\nvoid main() { data[0] = " +
			"pc.a[data.length()]; }",
			[]string{"132 bytes", "limit is 128"}},
		{"many", prologue + size + manyBindings(17), []string{"17 storage bindings", "16"}},
		{"std430", prologue + size +
			"layout(binding = 0, std430) buffer Out { vec3 data[]; };\nvoid main() { data[0] " +
			"= vec3(1); }",
			[]string{"binding 0 (data)", "16 bytes apart but hold 12", "scalar"}},
		{"offset", prologue + size + "struct S { float a; vec2 b; };\nlayout(binding = 0, std430) buffer Out { S " +
			"data[]; };\nvoid main() { data[0].a = 1; }",
			[]string{"S.b is at byte 8 where Go would put it at 4", "scalar"}},
		{"two_layouts", prologue + size +
			"struct S { float a; float b; };\nlayout(binding = 0, scalar) buffer Out { S data[]; };\nlayout(binding " +
			"= 1, scalar) buffer s { uint x; uint y; };\nvoid main() { data[0].a = x; y = 1; }",
			[]string{"struct s has two layouts", "rename one"}},
		{"no_size", prologue + outBuf + "void main() { data[0] = 1; }", []string{"local_size_x is missing"}},
		{"big_group", prologue + "layout(local_size_x = 512) in;\n" + outBuf + "void main() { data[0] = 1; }",
			[]string{"512 invocations", "256"}},
		{"size_y", prologue + "layout(local_size_x = 8, local_size_y = 8, local_size_y_id = 3) in;\n" + outBuf +
			"void main() { data[0] = gl_WorkGroupSize.y; }",
			[]string{"local_size_y_id is not supported"}},
		{"gap", prologue + size +
			"layout(binding = 0, scalar) writeonly buffer A { uint a[]; };\nlayout(binding = 2, " +
			"scalar) writeonly buffer B { uint b[]; };\nvoid main() { a[0] = 1; b[0] = 2; }",
			[]string{"b has 2 where 1 is expected"}},
		{"set", prologue + size + "layout(set = 1, binding = 0, scalar) writeonly buffer A { uint a[]; };\nvoid " +
			"main() { a[0] = 1; }", []string{"descriptor set 1"}},
		{"uniform_block", prologue + size + outBuf +
			"layout(binding = 1, scalar) uniform U { uint u; };\nvoid main() { data[0] = u; }",
			[]string{"uniform block"}},
		{"matrix", prologue + size + "layout(binding = 0, scalar) buffer Out { mat3 m[]; };\nvoid main() { m[0][0] = " +
			"vec3(1); }", []string{"matrix is not supported"}},
		{"tail", prologue + size + "layout(binding = 0, scalar) buffer Out { uint n; uint rest[]; };\nvoid main() { " +
			"rest[n] = 1; }", []string{"Out.rest", "only member"}},
		{"double_member", prologue + size +
			"layout(binding = 0, scalar) buffer Out { double d[]; };\nvoid main() { d[0] = 1; }",
			[]string{"Float64", "64-bit number is not supported"}},
		{"spec_sized", prologue + size +
			"layout(constant_id = 0) const uint N = 4;\nlayout(binding = 0, scalar) buffer Out { float a[N]; " +
			"};\nvoid main() { a[0] = 1; }",
			[]string{"Out.a", "specialization constant"}},
		{"bool_true", prologue + size + outBuf +
			"layout(constant_id = 0) const bool ON = true;\nvoid main() { data[0] = ON ? 1 : 0; }",
			[]string{"ON", "default true", "invert"}},
		{"both", prologue + size + "layout(binding = 0, scalar) readonly writeonly buffer Out { uint data[]; " +
			"};\nlayout(binding = 1, scalar) buffer O { uint o[]; };\nvoid main() { o[0] = data.length(); }",
			[]string{"both readonly and writeonly"}},
		{"shuffle", prologue + "#extension GL_KHR_shader_subgroup_shuffle_relative : require\n" + size + outBuf +
			"void main() { data[0] = subgroupShuffleUp(gl_LocalInvocationID.x, 1); }",
			[]string{"GroupNonUniformShuffleRelative", "subgroupShuffle("}},
		{"shared_memory", prologue + size + outBuf +
			"shared uint big[5000];\nvoid main() { big[gl_LocalInvocationID.x] = 1; barrier(); data[0] = big[3]; }",
			[]string{"20000 bytes of shared memory", "16384"}},
		{"collide", prologue + size + "layout(binding = 0, scalar) writeonly buffer A { uint n_a[]; " +
			"};\nlayout(binding = 1, scalar) writeonly buffer B { uint nA[]; };\nvoid main() { n_a[0] = 1; nA[0] = 2; }",
			[]string{"NA", "rename"}},
		{"Upper", prologue + size + outBuf + "void main() { data[0] = 1; }",
			[]string{"shaders/Upper.comp", "lower case"}},
		{"x_test", prologue + size + outBuf + "void main() { data[0] = 1; }", []string{"rename the kernel"}},
		{"array_of_buffers", prologue + size +
			"layout(binding = 0, scalar) writeonly buffer A { uint a[]; } as[2];\nvoid main() { as[0].a[0] = 1; " +
			"as[1].a[0] = 1; }",
			[]string{"arrays of buffers"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := repository(t, map[string]string{c.name + ".comp": c.text})
			_, _, err := build(root)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, w := range append(c.want, "shaders/"+c.name+".comp") {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error does not say %q:\n%v", w, err)
				}
			}
		})
	}
}

func manyBindings(n int) string {
	var decl, use strings.Builder
	for i := range n {
		name := string(rune('a'+i)) + "x"
		decl.WriteString("layout(binding = " + strconv.Itoa(i) + ", scalar) writeonly buffer B" + name + " { uint " +
			name + "[]; };\n")
		use.WriteString(name + "[0] = 1; ")
	}
	return decl.String() + "void main() { " + use.String() + "}"
}

// TestStructsOfTwoKernels refuses one struct name with two layouts.
func TestStructsOfTwoKernels(t *testing.T) {
	needTools(t)
	body := func(members string) string {
		return prologue + "layout(local_size_x = 64) in;\nstruct S { " + members +
			" };\nlayout(binding = 0, scalar) writeonly buffer Out { S data[]; };\nvoid main() { data[0].a = 1; }"
	}
	root := repository(t, map[string]string{"one.comp": body("uint a; float b;"), "two.comp": body("uint a; uint b;")})
	_, _, err := build(root)
	if err == nil || !strings.Contains(err.Error(), "struct S has another layout than in one.comp") {
		t.Errorf("error %v", err)
	}
}

func TestConstants(t *testing.T) {
	good := "#ifndef A\n// Above.\nconst uint N_MAX = 0x10u; // beside\nconst int LOW = -5;\n\nconst float TINY = " +
		"1.5e-3f;\n#endif\n"
	got, err := parseConstants("const.glsl", good)
	if err != nil || len(got) != 3 {
		t.Fatalf("%v, error %v", got, err)
	}
	if c := got[0]; c.goName != "NMax" || c.value != "0x10" || !slices.Equal(c.doc, []string{"Above."}) ||
		c.comment != "beside" {
		t.Errorf("%+v", c)
	}
	if got[1].value != "-5" || got[1].gap || got[2].value != "1.5e-3" || !got[2].gap {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{
		"const uint A = B * 2;", "const uint A = -1;", "const uint A = 4294967296;", "const int A = 2147483648;",
		"const float A = 1;", "const float A = 1e99;",
		"const float A = 1e-99;", "const vec2 A = vec2(1);", "uint a() { return 1; }",
		"const uint A = 1; const uint B = 2;", "const uint A_B = 1;\nconst uint aB = 1;",
	} {
		if got, err := parseConstants("const.glsl", bad); err == nil || !strings.HasPrefix(err.Error(), "const.glsl:") {
			t.Errorf("%q: %v, error %v", bad, got, err)
		}
	}
}

// TestMalformed feeds the parser cut and damaged modules: errors, no panics.
func TestMalformed(t *testing.T) {
	needTools(t)
	root := repository(t, goodShaders(t))
	kernels := must.Get(compileAll(root, nil))(t)
	src := &source{bindings: map[int]string{}, structs: map[string]sourceDoc{}, maxBinding: -1, declaresLocalSize: true}
	for _, k := range kernels {
		for cut := 0; cut < len(k.spv); cut += 4 {
			if _, err := reflectKernel("x", "x.comp", k.spv[:cut], k.spv, src); err == nil && cut < 20 {
				t.Errorf("%d bytes accepted", cut)
			}
			damaged := bytes.Clone(k.spv)
			damaged[cut] ^= 0x55
			_, _ = reflectKernel("x", "x.comp", damaged, damaged, src)
		}
	}
}

func TestCamel(t *testing.T) {
	for in, want := range map[string]string{
		"n_splats": "NSplats", "TILE_SIZE": "TileSize", "mean2d": "Mean2d", "v_means": "VMeans", "K": "K",
		"StepParams": "StepParams", "sh0": "Sh0", "_x": "X", "": "",
	} {
		if got := camel(in); got != want {
			t.Errorf("camel(%q) = %q, want %q", in, got, want)
		}
	}
}
