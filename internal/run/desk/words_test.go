package desk

import "testing"

// TestForPage wants messages of commands to name controls of the page where it has them.
func TestForPage(t *testing.T) {
	for text, want := range map[string]string{
		"photos are reduced; --downscale 1 trains on all pixels": "photos are reduced; photo size 1/1 trains on all pixels",
		"expect a rough model; try --downscale 8 or a longer --time-limit": "expect a rough model; try photo size 1/8 or " +
			"a longer time limit",
		"memory has room for 5 splats (raise --max-vram)": "memory has room for 5 splats (raise --max-vram)",
		"well-known words": "well-known words",
	} {
		if got := forPage(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
