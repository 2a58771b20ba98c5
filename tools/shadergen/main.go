// Command shadergen compiles shaders/*.comp and prints their interfaces as Go.
//
//	go run ./tools/shadergen          compile, optimise, validate, write spv/ and *_gen.go, delete stale ones
//	go run ./tools/shadergen -check   the same into memory; fail with the names of files that differ
//
// A kernel shows its whole interface in GLSL: storage buffers at bindings 0, 1, 2, ... of set 0 with scalar layout and
// readonly or writeonly, at most one push constant block, specialization constants. Each .comp becomes a struct with
// one typed field per binding; GLSL structs and the constants of shared/const.glsl become the package shaders/layout.
// A kernel may have variants: variant.go.
//
// shaders/model.schema says what a splat is made of: model.go prints the rows, lists and types that follow, in GLSL
// and Go. shaders/settings.schema lists the training settings: it becomes pipeline/recipe/config_gen.go and members of
// StepParams.
//
// compile.go runs glslc and spirv-opt, reflect.go reads the SPIR-V, source.go the comments of the GLSL, emit.go prints.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// toolsFile names the compilers that made the committed SPIR-V.
const toolsFile = "shaders/spv/TOOLS"

func main() {
	check := flag.Bool("check", false, "compare with the committed files instead of writing them")
	flag.Parse()
	if err := run(*check, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(check bool, w io.Writer) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	made, err := buildSettings(root)
	if err == nil && !check {
		err = put(root, made) // kernels include some of it
	}
	if err != nil {
		return err
	}
	out, kernels, err := build(root)
	if err != nil {
		return err
	}
	maps.Copy(out, made)
	if check {
		return compare(root, out, w)
	}
	for _, k := range kernels {
		for _, note := range k.notes {
			fmt.Fprintln(w, "note:", note)
		}
	}
	return write(root, out)
}

// findRoot returns the nearest folder upwards that holds go.mod.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("shadergen: no go.mod here or above: run it inside the repository")
		}
		dir = parent
	}
}

// stale lists generated files that no kernel accounts for.
func stale(root string, out outputs) ([]string, error) {
	var extra []string
	for _, pattern := range []string{"shaders/*_gen.go", "shaders/layout/*_gen.go", "shaders/spv/*.spv",
		modelFolder + "*.glsl"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			rel, err := filepath.Rel(root, f)
			if err != nil {
				return nil, err
			}
			if rel = filepath.ToSlash(rel); out[rel] == nil {
				extra = append(extra, rel)
			}
		}
	}
	slices.Sort(extra)
	return extra, nil
}

// write brings the files on disk up to date and deletes stale ones.
func write(root string, out outputs) error {
	if err := put(root, out); err != nil {
		return err
	}
	extra, err := stale(root, out)
	if err != nil {
		return err
	}
	for _, rel := range extra {
		if err := os.Remove(filepath.Join(root, rel)); err != nil {
			return err
		}
	}
	return nil
}

// put writes files, leaving equal ones untouched.
func put(root string, out outputs) error {
	for rel, content := range out {
		path := filepath.Join(root, rel)
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare fails with the list of files that differ from what the sources give. Another compiler version
// may give other SPIR-V bytes for the same source, so then only the Go files are judged.
func compare(root string, out outputs, w io.Writer) error {
	pinned, err := os.ReadFile(filepath.Join(root, toolsFile))
	goOnly := err == nil && !bytes.Equal(pinned, out[toolsFile])
	if goOnly {
		fmt.Fprintf(w, "shadergen: the compilers here differ from %s: comparing only the Go files, not the SPIR-V\n",
			toolsFile)
	}
	var differ []string
	for rel, content := range out {
		if goOnly && strings.HasPrefix(rel, "shaders/spv/") {
			continue
		}
		old, err := os.ReadFile(filepath.Join(root, rel))
		if err != nil {
			differ = append(differ, rel+" (missing)")
		} else if !bytes.Equal(old, content) {
			differ = append(differ, rel)
		}
	}
	extra, err := stale(root, out)
	if err != nil {
		return err
	}
	for _, rel := range extra {
		differ = append(differ, rel+" (no kernel makes it)")
	}
	if len(differ) == 0 {
		return nil
	}
	slices.Sort(differ)
	return fmt.Errorf("shadergen: generated files differ from their sources: run `go generate ./shaders` and commit\n  %s", strings.Join(differ, "\n  "))
}
