package desk

import "testing"

// TestForPage wants messages of commands to name controls of the page, or nothing, where they name flags.
func TestForPage(t *testing.T) {
	for text, want := range map[string]string{
		"took the cameras of fox/sparse/0; --format transforms takes those of fox/transforms.json": "took the cameras " +
			"of fox/sparse/0",
		"5 of 9 photos are wider than 1600 pixels and are reduced to that; --downscale 1 trains on all pixels": "5 of 9 " +
			"photos are wider than 1600 pixels and are reduced to that; photo size 1/1 trains on all pixels",
		"expect a rough model; try --downscale 8 or a longer limit": "expect a rough model; try photo size 1/8 or a " +
			"longer limit",
		"memory has room for 5 splats (raise --max-vram, or use --precision mixed)": "memory has room for 5 splats",
		"capture again, closer": "capture again, closer",
		"use -r 4":              "",
		"run vksplat doctor":    "",
		"well-known words":      "well-known words",
		"device lost":           "device lost",
	} {
		if got := forPage(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := forPageAtLeast("--x is 5"); got != "--x is 5" {
		t.Errorf("an error becomes %q", got)
	}
}
