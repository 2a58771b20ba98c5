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
		{"1250 times the root of the photos", [3]int{9682, 7181, 7906}, true},
		{"a hundredth of it", [3]int{97, 72, 79}, true},
		{"one block by another factor", [3]int{9682, 7181, 4743}, false},
		{"one step at least", [3]int{1, 1, 1}, true},
		{"one block was stopped early", [3]int{9682, 7181, 7000}, false},
	} {
		if got := p.Follow(tt.steps[:]); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
