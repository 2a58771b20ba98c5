package main

import (
	"strings"
	"testing"
)

// storeKernel is a kernel with a variant, which has words of the type STORED, its own workgroup size, and a constant
// WORD_FILL with the number 1. The kernel itself has the constant PLAIN.
const storeKernel = `#version 460
#extension GL_EXT_scalar_block_layout : require
// store clears words.
// variant whole: the words are integers
#ifdef WHOLE
#define WORD STORED
layout(local_size_x = 32) in;
layout(constant_id = 1) const uint WORD_FILL = 7u;
#define FILL WORD_FILL
#else
#define WORD float
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint PLAIN = 0u;
#define FILL PLAIN
#endif
layout(binding = 0, scalar) writeonly buffer Words { WORD words[]; };
void main() { words[gl_GlobalInvocationID.x] = WORD(FILL); }
`

func TestVariants(t *testing.T) {
	needTools(t)
	of := func(changes ...string) map[string]string {
		return map[string]string{"store.comp": strings.NewReplacer(changes...).Replace(storeKernel)}
	}
	root := repository(t, of("STORED", "uint"))
	out, kernels, err := build(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(kernels) != 2 || kernels[1].name != "store_whole" || out["shaders/spv/store_whole.spv"] == nil {
		t.Errorf("%d kernels", len(kernels))
	}
	if out["shaders/store_whole_gen.go"] != nil {
		t.Error("a variant has a pass of its own")
	}
	text := strings.Join(strings.Fields(string(out["shaders/store_gen.go"])), " ")
	for _, want := range []string{
		"Words vk.Slice[float32]", "Whole bool // the words are integers",
		"if p.Whole { return &storeWholeKernel } return &storeKernel", "//go:embed spv/store_whole.spv",
		`variantOf(storeKernel, "store_whole", storeWholeSPIRV, [3]uint32{32, 1, 1})`,
		"Plain uint32 // constant_id 0, default 0", "WordFill uint32 // constant_id 1, default 7",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the pass lacks %q:\n%s", want, text)
		}
	}
	for name, changes := range map[string][]string{
		"words of another size":   {"STORED", "uvec2"},
		"another constant 0":      {"STORED", "uint", "constant_id = 1", "constant_id = 0"},
		"two numbers of one name": {"STORED", "uint", "PLAIN", "WORD_FILL"},
		"local_size_x_id in one":  {"STORED", "uint", "local_size_x = 32", "local_size_x_id = 2, local_size_x = 32"},
		"another list of push data": {"STORED", "uint", "#define FILL WORD_FILL",
			"layout(push_constant) uniform Push { uint fill; } pc;\n#define FILL (WORD_FILL + pc.fill)"},
	} {
		_, _, err = build(repository(t, of(changes...)))
		if err == nil || !strings.Contains(err.Error(), "variant whole has another interface") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
