package output

import (
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
)

// TestRefuseLoop refuses to replace a symbolic link that leads to itself, even with --overwrite.
func TestRefuseLoop(t *testing.T) {
	dir := t.TempDir()
	self, ring, back := filepath.Join(dir, "self"), filepath.Join(dir, "ring"), filepath.Join(dir, "back")
	for link, to := range map[string]string{self: "self", ring: "back", back: "ring"} {
		if err := os.Symlink(to, link); err != nil {
			t.Skip(err)
		}
	}
	for _, path := range []string{self, ring} {
		for _, overwrite := range []bool{false, true} {
			if err := RefuseExisting("", overwrite, path); fault.ExitCode(err) != fault.ExitUsage || fault.Hint(err) == "" {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if err := RefuseExisting("", false, filepath.Join(dir, "new")); err != nil {
		t.Error(err)
	}
}
