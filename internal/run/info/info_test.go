package info

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// TestDescribeDamaged wants to hear what is wrong with a model whose name is also that of captures.
func TestDescribeDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tileset.json")
	text := []byte(`{"geometricError":1,"root":{"content":{"uri":"a.b3dm"}}}`)
	must.Do(t, os.WriteFile(path, text, 0o600))
	if _, _, err := Describe(path, false); err == nil || !strings.Contains(err.Error(), "a.b3dm") {
		t.Errorf("error %v", err)
	}
}
