package output

import (
	"testing"
)

// TestClaimWaits wants a run that waits for the one before it to say so, once, and then to have the folder.
func TestClaimWaits(t *testing.T) {
	dir := t.TempDir()
	told := 0
	first, err := Claim(dir, true, func() { told++ })
	if err != nil || told > 0 {
		t.Fatalf("a free folder: told %d times, error %v", told, err)
	}
	second, err := Claim(dir, true, func() {
		told++
		first()
	})
	if err != nil || told != 1 {
		t.Fatalf("told %d times, error %v", told, err)
	}
	second()
}
