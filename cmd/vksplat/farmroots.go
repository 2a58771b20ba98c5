package main

import (
	"cmp"
	"maps"
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
		return fault.Usagef("as in --root scans=/srv/scans", "%q is not NAME=DIR", s)
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

// read gives the roots that are named.
func (f *rootsFlags) read() (roots store.Roots, err error) {
	roots = store.Roots{}
	if file := cmp.Or(f.file, store.UsualRoots()); file != "" {
		if roots, err = store.ReadRootsFile(file); err != nil {
			return nil, err
		}
	}
	maps.Copy(roots, f.more.roots)
	return roots, nil
}
