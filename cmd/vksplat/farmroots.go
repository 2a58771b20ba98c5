package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"

	"vksplat/farm/store"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
)

// rootsFlags say where the store's roots are.
type rootsFlags struct {
	file string
	more rootsFlag
}

func (f *rootsFlags) table() []option {
	return []option{
		text(&f.file, "roots",
			"TOML `FILE` with the store's roots (default: roots.toml in vksplat's config folder)"),
		other(&f.more, "root", "a root of the store, `NAME=DIR` or NAME=s3://bucket/prefix, may be repeated"),
	}
}

// rootsFlag is a list of NAME=DIR.
type rootsFlag struct{ roots store.Roots }

func (f *rootsFlag) Type() string   { return "NAME=DIR" }
func (f *rootsFlag) String() string { return "" }

// Set adds a root.
func (f *rootsFlag) Set(s string) error {
	name, dir, _ := strings.Cut(s, "=")
	if name == "" || dir == "" {
		return fault.Usagef("as in --root scans=/srv/scans", "%q names no root and folder", s)
	}
	if f.roots == nil {
		f.roots = store.Roots{}
	}
	if !store.IsBucket(dir) {
		dir = output.Absolute(dir)
	}
	f.roots[name] = store.Options{URL: dir}
	return nil
}

// readRootsFile reads a file of roots, without which a machine is not set up.
func readRootsFile(file string) (store.Roots, error) {
	data, err := readAtMost(file, maxJobFile)
	if err != nil {
		return nil, &fault.Error{Op: "read roots", Path: file, Err: fault.Pathless(err),
			Hint: "name a file with lines like: inputs = \"file:///srv/scans\"", Kind: store.ErrSetup}
	}
	return store.ReadRoots(file, data)
}

// read gives the roots that are named.
func (f *rootsFlags) read() (roots store.Roots, err error) {
	roots = store.Roots{}
	file := f.file
	if dir, err := os.UserConfigDir(); file == "" && err == nil {
		if usual := filepath.Join(dir, "vksplat", "roots.toml"); output.IsFile(usual) {
			file = usual
		}
	}
	if file != "" {
		if roots, err = readRootsFile(file); err != nil {
			return nil, err
		}
	}
	maps.Copy(roots, f.more.roots)
	return roots, nil
}
