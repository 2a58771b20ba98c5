// Package playtest lets tests drive a headless browser, by scripts in Python that use Playwright. Run skips the test
// where Chromium or Playwright is missing; VKSPLAT_CHROMIUM and VKSPLAT_PYTHON name others than those in PATH.
package playtest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// shared is what all scripts import, as browser.
//
//go:embed browser.py
var shared []byte

// Run gives a script its task as JSON, with the path of a browser as "chromium", and reads the log that it prints. It
// skips the test where there is no browser or no Playwright.
func Run(t testing.TB, script string, task map[string]any, log any) {
	t.Helper()
	for _, name := range []string{os.Getenv("VKSPLAT_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && task["chromium"] == nil {
			task["chromium"] = path
		}
	}
	if task["chromium"] == nil {
		t.Skip("no chromium; VKSPLAT_CHROMIUM names one")
	}
	python := os.Getenv("VKSPLAT_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "from playwright.sync_api import sync_playwright").Run(); err != nil {
		if os.Getenv("VKSPLAT_PACKAGES") == "1" {
			t.Fatal("the packages were installed and cannot be used")
		}
		t.Skip("no Python with the package playwright; VKSPLAT_PYTHON names one")
	}
	dir := t.TempDir()
	text, err := json.Marshal(task)
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "browser.py"), shared, 0o666)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, script)
	cmd.Stdin = bytes.NewReader(text)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, exit.Stderr)
	}
	if err := errors.Join(err, json.Unmarshal(out, log)); err != nil {
		t.Fatal(err)
	}
}
