package vk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"vksplat/internal/fault"
)

// manifestKinds are the folders of manifests, as the loader reads them, and the variables that name files or folders
// in their place or beside them. On Windows the registry names others, which are not looked at.
var manifestKinds = []struct {
	folder        string
	instead, more []string
}{
	{"icd.d", []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}, []string{"VK_ADD_DRIVER_FILES"}},
	{"implicit_layer.d", []string{"VK_IMPLICIT_LAYER_PATH"}, []string{"VK_ADD_IMPLICIT_LAYER_PATH"}},
	{"explicit_layer.d", []string{"VK_LAYER_PATH"}, []string{"VK_ADD_LAYER_PATH"}},
}

// blameManifest gives the error of a manifest that cannot be parsed in place of one of the loader's, which says that
// there is no memory or no driver even where other manifests are good.
func blameManifest(err error, env func(string) string) error {
	for _, path := range manifests(env) {
		data, bad := os.ReadFile(path)
		if bad != nil {
			continue // the loader leaves it out, too
		}
		var v any
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
		if bad := json.NewDecoder(bytes.NewReader(data)).Decode(&v); bad != nil { // what follows a value is not read
			return fault.WithHint(&Error{Call: "load Vulkan", Object: path,
				Err: fmt.Errorf("%w: the manifest of a driver or layer cannot be parsed: %w", ErrNoDevice, bad)},
				"remove the file, or install again the driver or layer that it belongs to")
		}
	}
	return err
}

// manifests lists the files that the loader reads.
func manifests(env func(string) string) (files []string) {
	in := func(dirs ...string) {
		for _, dir := range dirs {
			if st, err := os.Stat(dir); err == nil && !st.IsDir() {
				files = append(files, dir)
			}
			list, err := filepath.Glob(filepath.Join(dir, "*.json"))
			if err == nil {
				files = append(files, list...)
			}
		}
	}
	first := func(names []string) string {
		for _, name := range names {
			if s := env(name); s != "" {
				return s
			}
		}
		return ""
	}
	home := env("HOME")
	standard := append(filepath.SplitList(cmp.Or(env("XDG_CONFIG_DIRS"), "/etc/xdg")),
		cmp.Or(env("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "/etc", "/usr/local/etc",
		cmp.Or(env("XDG_DATA_HOME"), filepath.Join(home, ".local/share")))
	standard = append(standard, filepath.SplitList(cmp.Or(env("XDG_DATA_DIRS"), "/usr/local/share:/usr/share"))...)
	for _, kind := range manifestKinds {
		in(filepath.SplitList(first(kind.more))...)
		if s := first(kind.instead); s != "" {
			in(filepath.SplitList(s)...)
			continue
		}
		for _, dir := range standard {
			in(filepath.Join(dir, "vulkan", kind.folder))
		}
	}
	return files
}
