package plans

import "testing"

// TestFollow wants numbers of steps that follow the blocks' photos told from those that do not.
func TestFollow(t *testing.T) {
	p := &Plan{Photos: 110, HeldOut: make([]string, 10),
		Blocks: []planBlock{{Trained: 60}, {Trained: 33}, {Trained: 40}}}
	for _, tt := range []struct {
		name  string
		steps [3]int
		want  bool
	}{
		{"equal", [3]int{30000, 30000, 30000}, false}, // which needs no word of it
		{"shares of 30000", [3]int{18000, 9900, 12000}, true},
		{"shares of 37, rounded down", [3]int{22, 12, 14}, true},
		{"shares of 38, to the nearest", [3]int{23, 13, 15}, true},
		{"one block of another recipe", [3]int{18000, 9900, 30000}, false},
		{"630 times the photos to the power of 2/3", [3]int{9655, 6482, 7369}, true},
		{"a hundredth of it", [3]int{97, 65, 74}, true},
		{"one block by another factor", [3]int{9655, 6482, 4421}, false},
		{"one step at least", [3]int{1, 1, 1}, true},
		{"one block was stopped early", [3]int{9655, 6482, 7000}, false},
	} {
		if got := p.Follow(tt.steps[:]); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
