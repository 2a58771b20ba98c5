package convert

import (
	"os"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

// TestDropTemporary removes what an aborted write leaves, and nothing else.
func TestDropTemporary(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"model.ply", ".model.ply.tmp123", ".other.ply.tmp123", ".model.ply.tmpx"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o666))
	}
	dropTemporary(filepath.Join(dir, "model.ply"))
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 {
		t.Errorf("left: %v, %v", left, err)
	}
	if output.IsFile(filepath.Join(dir, ".model.ply.tmp123")) {
		t.Error("what was written of model.ply is still there")
	}
}
