package vk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// TestBrokenManifest names a manifest that is cut short, alone and beside good ones, where the loader speaks of memory.
func TestBrokenManifest(t *testing.T) {
	if os.Getenv(caseVariable) != "" {
		_, err := Open(InstanceOptions{})
		file := os.Getenv(caseVariable)
		if err == nil && os.Getenv("VK_DRIVER_FILES") == file { // newer loaders go on with what is good
			t.Error("there is a driver")
		}
		if err != nil && (!errors.Is(err, ErrNoDevice) || errors.Is(err, ErrOutOfMemory) ||
			!strings.Contains(err.Error(), file) || !strings.Contains(fault.Hint(err), "remove the file")) {
			t.Errorf("%v; %s", err, fault.Hint(err))
		}
		return
	}
	if _, err := Open(InstanceOptions{}); errors.Is(err, ErrNoLoader) {
		t.Skip("no Vulkan here")
	}
	cut := filepath.Join(t.TempDir(), "cut.json")
	must.Do(t, os.WriteFile(cut, []byte(`{"file_format_version": "1.0.0", "ICD": {`), 0o644))
	good := must.Get(filepath.Glob("/usr/share/vulkan/icd.d/*.json"))(t)
	layers := filepath.Join(t.TempDir(), "vulkan", "implicit_layer.d")
	both := strings.Join(append(good, cut), ":")
	for _, env := range [][]string{
		{"VK_DRIVER_FILES=" + cut, "VK_ICD_FILENAMES=" + cut},
		{"VK_DRIVER_FILES=" + both, "VK_ICD_FILENAMES=" + both},
		{"XDG_DATA_HOME=" + filepath.Dir(filepath.Dir(layers))},
	} {
		at := cut
		if strings.HasPrefix(env[0], "XDG") {
			at = filepath.Join(layers, "cut.json")
			must.Do(t, errors.Join(os.MkdirAll(layers, 0o755), os.Rename(cut, at)))
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestBrokenManifest$")
		cmd.Env = append(append(os.Environ(), env...), caseVariable+"="+at)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", env, err, out)
		}
	}
}

// TestManifests lists what the loader reads, in place of and beside the standard folders.
func TestManifests(t *testing.T) {
	home := t.TempDir()
	path := func(name string) string { return filepath.Join(home, filepath.FromSlash(name)) }
	for name, text := range map[string]string{"a/vulkan/icd.d/broken.json": "{", "a/vulkan/icd.d/x.txt": "",
		"a/.config/vulkan/icd.d/broken.json": "{",
		"b/whole.json":                       "\ufeff{} trailing", "b/empty.json": "", "c.json": "["} {
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path(name)), 0o755),
			os.WriteFile(path(name), []byte(text), 0o644)))
	}
	t.Chdir(path("a"))
	noMemory := failed("vkCreateInstance", "", outOfHostMemory)
	noDriver := fault.WithHint(&callError{Call: "vkCreateInstance", Result: badDriver, Err: ErrNoDevice}, driverHint)
	for _, c := range []struct{ variable, value, want string }{
		{"XDG_DATA_HOME", path("a"), "a/vulkan/icd.d/broken.json"},
		{"XDG_CONFIG_DIRS", path("none") + ":" + path("a"), "a/vulkan/icd.d/broken.json"},
		{"VK_DRIVER_FILES", path("b/whole.json") + ":" + path("c.json"), "c.json"},
		{"VK_ADD_DRIVER_FILES", path("b"), "b/empty.json"},
		{"VK_LAYER_PATH", path("b"), "b/empty.json"},
		{"VK_DRIVER_FILES", path("b/whole.json"), ""},
		{"VK_DRIVER_FILES", path("none.json"), ""},
		{"HOME", "", ""},
	} {
		env := map[string]string{"HOME": home, "XDG_DATA_DIRS": home, c.variable: c.value}
		get := func(name string) string { return env[name] }
		err := blameManifest(noMemory, get)
		if c.want == "" && err != noMemory || c.want != "" && (!strings.Contains(err.Error(), path(c.want)+": the manifest") ||
			!errors.Is(err, ErrNoDevice) || errors.Is(err, ErrOutOfMemory)) {
			t.Errorf("%s=%s: %v", c.variable, c.value, err)
		}
		want := c.want != "" && c.variable != "VK_LAYER_PATH" // no layer hides drivers
		err = blameManifest(noDriver, get)
		if want != strings.Contains(err.Error(), path(c.want)+": the manifest") || !errors.Is(err, ErrNoDevice) ||
			!strings.HasSuffix(fault.Hint(err), driverHint) || want != strings.HasPrefix(fault.Hint(err), "remove the file") {
			t.Errorf("no driver, %s=%s: %v; %s", c.variable, c.value, err, fault.Hint(err))
		}
		for _, other := range []error{ErrNoLoader, errNoValidation} {
			if err := blameManifest(other, get); err != other {
				t.Errorf("%v becomes %v", other, err)
			}
		}
	}
	env := map[string]string{"XDG_DATA_HOME": path("a"), "VK_DRIVER_FILES": path("c.json")}
	if list := manifests(manifestKinds, func(name string) string { return env[name] }); slices.Contains(list,
		path("a/vulkan/icd.d/broken.json")) || !slices.Contains(list, path("c.json")) {
		t.Errorf("it reads %q", list)
	}
}
