package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

var kernelName = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// outputs maps paths relative to the repository root to the content they should have.
type outputs map[string][]byte

// build compiles and reflects every kernel below root/shaders; it writes only to a temporary directory.
func build(root string) (outputs, []*kernel, error) {
	versions, err := toolVersions()
	if err != nil {
		return nil, nil, err
	}
	schema, err := readModel(root)
	if err != nil {
		return nil, nil, err
	}
	printed := outputs{}
	if schema != nil {
		if printed, err = schema.outputs(); err != nil {
			return nil, nil, err
		}
	}
	kernels, err := compileAll(root, printed)
	if err != nil {
		return nil, nil, err
	}
	var consts []constantDecl
	constFile := "shaders/shared/const.glsl"
	if text, err := os.ReadFile(filepath.Join(root, constFile)); err == nil {
		if consts, err = parseConstants(constFile, string(text)); err != nil {
			return nil, nil, err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	structs, users, err := mergeStructs(kernels)
	if err != nil {
		return nil, nil, err
	}
	if err := checkNames(kernels, structs, consts); err != nil {
		return nil, nil, err
	}
	out := printed
	out[toolsFile] = []byte(versions)
	if out["shaders/layout/layout_gen.go"], err = emitLayout(structs, users, consts); err != nil {
		return nil, nil, err
	}
	if out["shaders/all_gen.go"], err = emitAll(kernels); err != nil {
		return nil, nil, err
	}
	if err := out.addCases(root); err != nil {
		return nil, nil, err
	}
	for _, k := range kernels {
		out["shaders/spv/"+k.name+".spv"] = k.spv
		if k.variant != "" {
			continue // its pass is that of the kernel it is a variant of
		}
		if out["shaders/"+k.name+"_gen.go"], err = emitKernel(k); err != nil {
			return nil, nil, err
		}
	}
	return out, kernels, nil
}

// compileAll returns the kernels in name order, or every error of every kernel. They include the GLSL that was printed.
func compileAll(root string, printed outputs) ([]*kernel, error) {
	files, err := filepath.Glob(filepath.Join(root, "shaders", "*.comp"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	jobs, err := compilations(files)
	if err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp("", "shadergen")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := writeIncludes(printed, tmp); err != nil {
		return nil, err
	}
	kernels, errs := make([]*kernel, len(jobs)), make([]error, len(jobs))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, j := range jobs {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			kernels[i], errs[i] = compileKernel(root, j, tmp)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return joinVariants(kernels)
}

func compileKernel(root string, c compilation, tmp string) (*kernel, error) {
	name, file := c.name(), "shaders/"+filepath.Base(c.path)
	if !kernelName.MatchString(name) {
		return nil, fmt.Errorf("%s: a kernel's name becomes a Go file and type name: use lower case letters, digits "+
			"and single underscores", file)
	}
	for _, suffix := range []string{"_test", "_gen", "_linux", "_windows", "_darwin", "_amd64", "_arm64"} {
		if strings.HasSuffix(name, suffix) {
			return nil, fmt.Errorf("%s: the ending %s has a meaning in Go file names: rename the kernel", file, suffix)
		}
	}
	plain, optimised := filepath.Join(tmp, name+".plain.spv"), filepath.Join(tmp, name+".spv")
	// Optimising strips every name (google/shaderc#600), so the reflected module is the unoptimised one.
	steps := [][]string{
		append(c.defines("glslc"), "--target-env=vulkan1.2", "-Werror",
			"-I", filepath.Join("shaders", "shared"), "-I", includes(tmp), "-o", plain, file),
		{"spirv-val", "--target-env", "vulkan1.2", "--scalar-block-layout", plain},
		{"spirv-opt", "-O", "--strip-debug", plain, "-o", optimised},
		{"spirv-val", "--target-env", "vulkan1.2", "--scalar-block-layout", optimised},
	}
	for _, step := range steps {
		cmd := exec.Command(step[0], step[1:]...)
		cmd.Dir = root
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %s: %w\n%s", file, step[0], err, strings.TrimSpace(string(text)))
		}
	}
	src, err := readSource(c.path, filepath.Join(root, "shaders", "shared"))
	if err != nil {
		return nil, err
	}
	a, err := os.ReadFile(plain)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(optimised)
	if err != nil {
		return nil, err
	}
	k, err := reflectKernel(name, file, a, b, src)
	if k != nil {
		k.variant = c.variant
	}
	return k, err
}

// toolVersions describes the compilers whose output is committed.
func toolVersions() (string, error) {
	var b strings.Builder
	for _, tool := range []string{"glslc", "spirv-opt"} {
		text, err := exec.Command(tool, "--version").CombinedOutput() // some releases print it to stderr
		if err != nil {
			return "", fmt.Errorf("shadergen: run %s: %w: install glslc and spirv-tools (Debian: apt-get install "+
				"glslc spirv-tools)", tool, err)
		}
		fmt.Fprintf(&b, "%s:\n", tool)
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Target") {
				fmt.Fprintf(&b, "    %s\n", line)
			}
		}
	}
	return b.String(), nil
}
