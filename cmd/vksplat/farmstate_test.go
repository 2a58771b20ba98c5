package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestLocalStateNames gives jobs folders of their own, however long their names are in bytes.
func TestLocalStateNames(t *testing.T) {
	seen := map[string]bool{}
	for _, job := range []string{"j", strings.Repeat("ü", 64), strings.Repeat("撮", 64), strings.Repeat("撮", 63) + "影"} {
		dir, err := localState(job, "/results/"+job)
		if err != nil || len(filepath.Base(dir)) > 100 || seen[dir] {
			t.Errorf("%s: %s, %v", job, dir, err)
		}
		seen[dir] = true
	}
}
