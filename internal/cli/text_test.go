package cli

import "testing"

func TestDuration(t *testing.T) {
	for seconds, want := range map[float64]string{41.7: "42s", 185: "3m05s", 7620: "2h07m"} {
		if got := Duration(seconds); got != want {
			t.Errorf("%g seconds are %q, want %q", seconds, got, want)
		}
	}
}
