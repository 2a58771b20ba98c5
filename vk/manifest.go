package vk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"vksplat/internal/fault"
)

type manifestKind struct {
	folder        string
	instead, more []string
}

// manifestKinds, that of drivers first, are the folders of manifests, as the loader reads them, and the variables that
// name files or folders in their place or beside them. On Windows the registry names others, which are not looked at.
var manifestKinds = []manifestKind{
	{"icd.d", []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}, []string{"VK_ADD_DRIVER_FILES"}},
	{"implicit_layer.d", []string{"VK_IMPLICIT_LAYER_PATH"}, []string{"VK_ADD_IMPLICIT_LAYER_PATH"}},
	{"explicit_layer.d", []string{"VK_LAYER_PATH"}, []string{"VK_ADD_LAYER_PATH"}},
}

// blameManifest adds to an error of the loader, that there is no driver or no memory, the manifest that cannot be
// parsed: the loader calls that a lack of memory. Manifests of layers hide no driver.
func blameManifest(err error, env func(string) string) error {
	kinds, cause := manifestKinds[:1], err
	switch {
	case RefusedByDriver(err):
		kinds, cause = manifestKinds, fmt.Errorf("%w: %v", ErrNoDevice, err)
	case !errors.Is(err, ErrNoDevice):
		return err
	}
	for _, path := range manifests(kinds, env) {
		data, bad := os.ReadFile(path)
		if bad != nil {
			continue // the loader leaves it out, too
		}
		var v any
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
		if bad := json.NewDecoder(bytes.NewReader(data)).Decode(&v); bad != nil { // what follows a value is not read
			hint := "remove the file, or install again the driver or layer that it belongs to"
			if own := fault.OwnHint(err); own != "" {
				hint += "; if that does not help, " + own
			}
			return fault.WithHint(&callError{Call: "load Vulkan", Object: path,
				Err: fmt.Errorf("the manifest of a driver or layer cannot be parsed: %w: %w", bad, cause)}, hint)
		}
	}
	return err
}

// manifests lists the files of some kinds that the loader reads.
func manifests(kinds []manifestKind, env func(string) string) (files []string) {
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
	own := func(variable, folder string) string {
		if home := env("HOME"); home != "" {
			return cmp.Or(env(variable), filepath.Join(home, folder))
		}
		return env(variable)
	}
	standard := append(filepath.SplitList(cmp.Or(env("XDG_CONFIG_DIRS"), "/etc/xdg")),
		own("XDG_CONFIG_HOME", ".config"), "/etc", "/usr/local/etc", own("XDG_DATA_HOME", ".local/share"))
	standard = append(standard, filepath.SplitList(cmp.Or(env("XDG_DATA_DIRS"), "/usr/local/share:/usr/share"))...)
	standard = slices.DeleteFunc(standard, func(dir string) bool { return dir == "" })
	for _, kind := range kinds {
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
