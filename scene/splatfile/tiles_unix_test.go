//go:build unix

package splatfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"vksplat/scene/ply"
)

// TestTilesMode wants the folder of tiles to be as open as others that the user makes.
func TestTilesMode(t *testing.T) {
	dir := t.TempDir()
	defer syscall.Umask(syscall.Umask(0o027))
	smallTiles(t, filepath.Join(dir, tilesName), model(10, 0), ply.Meta{}, WriteOptions{})
	if st, err := os.Stat(filepath.Join(dir, tilesFolder)); err != nil || st.Mode().Perm() != 0o750 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}
