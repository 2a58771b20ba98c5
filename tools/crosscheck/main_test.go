package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// TestCheck looks at a module that is wrong on one system only: in a file of that system, in a test, and in a call of
// what the system does not have.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":       "module m\n\ngo 1.26\n",
		"a.go":         "package m\n\n// #include <stdlib.h>\nimport \"C\"\n\nfunc f() { g(); C.free(nil) }\n",
		"a_linux.go":   "package m\n\nfunc g() int { return 1 }\n",
		"a_windows.go": "package m\n\nimport \"syscall\"\n\nfunc g() int { return \"1\" }\n\nvar _ = syscall.Kill\n",
		"a_test.go":    "package m\n\nimport \"testing\"\n\nfunc TestG(*testing.T) { h() }\n",
		"h_test.go":    "//go:build !windows\n\npackage m\n\nfunc h() {}\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	if n, err := check(dir, "linux/amd64"); n != 2 || err != nil {
		t.Errorf("linux: %d packages, %v", n, err)
	}
	_, err := check(dir, "windows/amd64")
	if err == nil {
		t.Fatal("windows: no error")
	}
	for _, want := range []string{"a_windows.go:5:", "undefined: syscall.Kill", "a_test.go:5:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("windows: no %s in\n%v", want, err)
		}
	}
	if _, err := check(dir, "nowhere/6502"); err == nil {
		t.Error("an unknown system: no error")
	}
}
