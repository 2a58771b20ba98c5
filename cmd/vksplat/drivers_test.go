//go:build unix

package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// What two drivers may differ by, in dB: pictures of one file, and the score of a file that each trained alone.
const (
	driversDraw  = 60
	driversTrain = 0.5
)

// softwareDriver is a Vulkan driver that runs on the processor.
type softwareDriver struct {
	name, manifest string
	command        []string // in front of the program
	settings       []string // variables that its bytes must not depend on
	lack           string   // what to do where it is not installed
}

// softwareDrivers lists those that are known. VKSPLAT_MESA is a folder that tools/kernelstat/mesa.sh filled: programs
// run there with its own C library.
func softwareDrivers() []softwareDriver {
	widths := []string{"LP_NATIVE_VECTOR_WIDTH=256", "LP_NATIVE_VECTOR_WIDTH=128", "LP_NATIVE_VECTOR_WIDTH=512"}
	mesa := os.Getenv("VKSPLAT_MESA")
	lib := filepath.Join(mesa, "usr/lib/x86_64-linux-gnu")
	return []softwareDriver{
		{"lavapipe", installed("/usr/share/vulkan/icd.d/lvp_icd*.json", "/etc/vulkan/icd.d/lvp_icd*.json"), nil, widths,
			"install mesa-vulkan-drivers"},
		{"lavapipe of VKSPLAT_MESA", installed(filepath.Join(mesa, "usr/share/vulkan/icd.d/lvp_icd*.json")),
			[]string{filepath.Join(lib, "ld-linux-x86-64.so.2"), "--library-path", lib}, widths,
			"run tools/kernelstat/mesa.sh FOLDER, and set VKSPLAT_MESA=FOLDER"},
		{"SwiftShader", installed(swiftShader...), nil, []string{"VKSPLAT_SERIAL=0", "VKSPLAT_SERIAL=1"},
			"install chromium"},
	}
}

// installed returns the first file that one of the patterns names, or "".
func installed(patterns ...string) string {
	for _, p := range patterns {
		if found, err := filepath.Glob(p); err == nil && len(found) > 0 && filepath.IsAbs(p) {
			return found[0]
		}
	}
	return ""
}

// run runs the program on the driver with more variables of the environment, and returns what it printed.
func (d *softwareDriver) run(t *testing.T, env []string, args ...string) string {
	t.Helper()
	line := append(slices.Clone(d.command), must.Get(exec.LookPath("vksplat"))(t))
	line = append(line, args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = slices.Concat(os.Environ(), []string{"VK_DRIVER_FILES=" + d.manifest, "VK_ICD_FILENAMES=" + d.manifest},
		env)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %q: %v\n%s", d.name, args, err, out)
	}
	return string(out)
}

// driverTrainings have refinements, noise, splits, and blending for processors and for GPUs.
var driverTrainings = []struct{ name, setting, preset string }{
	{"default", "VKSPLAT_LANES=", "default"},
	{"3dgs", "VKSPLAT_LANES=", "3dgs"},
	{"as on GPUs", "VKSPLAT_LANES=gpu", "3dgs"},
}

// TestDrivers wants of each driver that runs on a processor all kernels right; of a training the same bytes whatever
// the width of its subgroups; and what the first driver makes: the pictures of a file, and about the score of one.
func TestDrivers(t *testing.T) {
	if !filetest.Long() {
		t.Skip("VKSPLAT_LONG=1 trains on every driver that runs on a processor")
	}
	capture, dir, first := smallScene(t, 300), t.TempDir(), ""
	for _, d := range softwareDrivers() {
		t.Run(d.name, func(t *testing.T) {
			if d.manifest == "" {
				t.Skipf("%s is not installed: %s", d.name, d.lack)
			}
			report := filepath.Join(t.TempDir(), "report.txt")
			d.run(t, nil, "doctor", "--report", report)
			row, _, _ := strings.Cut(string(must.Get(os.ReadFile(report))(t)), "\n")
			t.Logf("%s, for docs/devices-table.md:\n%s", d.manifest, row)
			for _, tr := range driverTrainings {
				folder := func(driver string, setting int) string {
					return filepath.Join(dir, driver, tr.name, fmt.Sprint(setting))
				}
				var model string
				for k, setting := range d.settings {
					out := folder(d.name, k)
					d.run(t, []string{setting, tr.setting}, "train", capture, "-m", out, "--preset", tr.preset,
						"--iterations", "100", "--refine-start", "40", "--refine-every", "20", "--eval", "--test-every",
						"4", "--progress", "none")
					made, _ := scoresOfRun(t, out)
					if model = cmp.Or(model, made); model != made {
						filetest.Same(t, model, made)
					}
				}
				own := folder(d.name, 0)
				d.run(t, nil, "render", own, "--split", "test", "-o", filepath.Join(own, "drawn"))
				if first != "" {
					d.compare(t, tr.name, own, folder(first, 0))
				}
			}
			if !t.Failed() {
				first = cmp.Or(first, d.name)
			}
		})
	}
}

// compare compares a training of the driver with another driver's.
func (d *softwareDriver) compare(t *testing.T, name, own, other string) {
	t.Helper()
	_, want := scoresOfRun(t, other)
	_, views := scoresOfRun(t, own)
	sameScores(t, name, views, want, driversTrain)
	again := t.TempDir()
	d.run(t, nil, "render", other, "--split", "test", "-o", again)
	for view := range views {
		picture := func(folder string) scene.Image {
			file := filepath.Join(folder, view)
			return pngPixels(t, file, must.Get(os.ReadFile(file))(t))
		}
		theirs := picture(filepath.Join(other, "drawn"))
		db := apart(t, picture(again), theirs)
		t.Logf("%s, %s: pictures of one file are %.1f dB apart, those of two %.1f dB", name, view, db,
			apart(t, picture(filepath.Join(own, "drawn")), theirs))
		if db < driversDraw {
			t.Error("that is too far")
		}
	}
}
