package main

import (
	"strings"
	"testing"
)

// storeKernel is a kernel with a variant, whose words are of the type STORED.
const storeKernel = `#version 460
#extension GL_EXT_scalar_block_layout : require
// store clears words.
// variant whole: the words are integers
layout(local_size_x = 64) in;
#ifdef WHOLE
#define WORD STORED
#else
#define WORD float
#endif
layout(binding = 0, scalar) writeonly buffer Words { WORD words[]; };
void main() { words[gl_GlobalInvocationID.x] = WORD(0); }
`

func TestVariants(t *testing.T) {
	needTools(t)
	of := func(stored string) map[string]string {
		return map[string]string{"store.comp": strings.ReplaceAll(storeKernel, "STORED", stored)}
	}
	root := repository(t, of("uint"))
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
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the pass lacks %q:\n%s", want, text)
		}
	}
	_, _, err = build(repository(t, of("uvec2")))
	if err == nil || !strings.Contains(err.Error(), "variant whole has another interface") {
		t.Errorf("words of another size: error %v", err)
	}
}
