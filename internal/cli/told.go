package cli

import (
	"os"
	"path/filepath"
)

// told is the file, in the user's cache folder, that is there once something has been said that is said once.
func told(name string) (file string, err error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "vksplat", name), err
}

// ToldBefore reports whether it was called before with this name by this user, until Untell. Where that cannot be kept,
// it was not: what matters is said again. Users without a cache folder get none of these notes.
func ToldBefore(name string) bool {
	file, err := told(name)
	if err != nil {
		return true
	}
	if _, err := os.Stat(file); err == nil {
		return true
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err == nil {
		_ = os.WriteFile(file, nil, 0o644)
	}
	return false
}

// Untell lets ToldBefore start from scratch.
func Untell(name string) {
	if file, err := told(name); err == nil {
		_ = os.Remove(file)
	}
}
