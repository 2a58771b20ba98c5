package atomicfile

import (
	"path/filepath"
	"runtime"
	"testing"
)

func TestFreeSpace(t *testing.T) {
	dir := t.TempDir()
	have, known := FreeSpace(dir)
	if !known {
		if runtime.GOOS == "linux" || runtime.GOOS == "windows" {
			t.Fatal("the free space is not known")
		}
		t.Skip("this system does not tell")
	}
	below, known := FreeSpace(filepath.Join(dir, "not", "there", "yet"))
	if !known || have <= 0 || below <= 0 {
		t.Errorf("%d bytes free, %d below", have, below)
	}
}
