package output

import (
	"testing"
)

// TestClaimTelling wants a run that waits for the one before it to say so, once, and then to have the folder.
func TestClaimTelling(t *testing.T) {
	dir := t.TempDir()
	told := 0
	first, err := ClaimTelling(dir, func() { told++ })
	if err != nil || told > 0 {
		t.Fatalf("a free folder: told %d times, error %v", told, err)
	}
	second, err := ClaimTelling(dir, func() {
		told++
		first()
	})
	if err != nil || told != 1 {
		t.Fatalf("told %d times, error %v", told, err)
	}
	second()
}
