package train

import "testing"

// TestCompiledText tells of a slow compilation, and whether the next run has it again.
func TestCompiledText(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		cached  bool
		want    string
	}{
		{0.9, false, ""},
		{2.04, true, "compiling 30 kernels took 2.0 s"},
		{2.04, false, "compiling 30 kernels took 2.0 s; they are kept for the next run"},
	} {
		if got := compiledText(30, c.seconds, c.cached); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
