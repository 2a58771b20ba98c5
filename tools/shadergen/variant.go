package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A kernel may have variants: the same source compiled again with a macro, for another storage of the same data or
// another kind of device. A line `variant NAME: what it is` of the header declares one. The macro is NAME in capitals,
// the kernel is called <kernel>_NAME, and the pass is the same Go struct with a field that chooses. Workgroups may
// differ, and either may have specialization constants that the other lacks.
var variantLine = regexp.MustCompile(`^variant ([a-z][a-z0-9]*): (.+)$`)

// compilation is one run of the compiler: a source, as itself or as one of its variants.
type compilation struct {
	path, variant string
}

func (c compilation) name() string {
	name := strings.TrimSuffix(filepath.Base(c.path), ".comp")
	if c.variant != "" {
		name += "_" + c.variant
	}
	return name
}

// defines begins the compiler's command line with what the source sees of the variant.
func (c compilation) defines(compiler string) []string {
	if c.variant == "" {
		return []string{compiler}
	}
	return []string{compiler, "-D" + strings.ToUpper(c.variant) + "=1"}
}

// compilations lists the sources and their variants in the order of the kernels' names.
func compilations(files []string) (list []compilation, err error) {
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		list = append(list, compilation{path: f})
		for _, line := range headerComment(strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")) {
			if found := variantLine.FindStringSubmatch(line); found != nil {
				list = append(list, compilation{f, found[1]})
			}
		}
	}
	slices.SortFunc(list, func(a, b compilation) int { return strings.Compare(a.name(), b.name()) })
	return list, nil
}

// joinVariants hands every variant to its kernel. Both must have one interface, because both have one pass.
func joinVariants(kernels []*kernel) ([]*kernel, error) {
	var errs []error
	for _, v := range kernels {
		if v.variant == "" {
			continue
		}
		base := strings.TrimSuffix(v.name, "_"+v.variant)
		i := slices.IndexFunc(kernels, func(k *kernel) bool { return k.name == base && k.variant == "" })
		k := kernels[i] // compilations lists it
		if !k.sameInterface(v) {
			errs = append(errs, fmt.Errorf("%s: variant %s has another interface than %s: bindings, push constants, "+
				"specialization constants of one number or name, and whether local_size_x_id is given, must agree",
				v.file, v.variant, k.name))
		}
		k.addSpecs(v.specs)
		k.variants = append(k.variants, v)
	}
	return kernels, errors.Join(errs...)
}

// sameInterface reports whether v can stand in for k. Elements of a binding may differ in type, not in size.
func (k *kernel) sameInterface(v *kernel) bool {
	push := k.push == v.push || k.push != nil && v.push != nil && k.push.same(v.push)
	differs := func(a spec) bool {
		return slices.ContainsFunc(k.specs, func(b spec) bool {
			return a != b && (a.id == b.id || a.goName == b.goName)
		})
	}
	return push && k.localSpec == v.localSpec && !slices.ContainsFunc(v.specs, differs) &&
		slices.EqualFunc(k.bindings, v.bindings, func(a, b binding) bool {
			return a.number == b.number && a.name == b.name && a.access() == b.access() && a.elem.size == b.elem.size
		})
}

// addSpecs adds the specialization constants that a kernel lacks. Its modules ignore those of others.
func (k *kernel) addSpecs(specs []spec) {
	for _, s := range specs {
		if !slices.ContainsFunc(k.specs, func(own spec) bool { return own.id == s.id }) {
			k.specs = append(k.specs, s)
		}
	}
	slices.SortFunc(k.specs, func(a, b spec) int { return int(a.id) - int(b.id) })
}

func emitVariantVars(b *bytes.Buffer, k *kernel) {
	for _, one := range k.variants {
		v, n := lowerFirst(one.goName), one.local
		local := fmt.Sprintf("[3]uint32{%d, %d, %d}", n[0], n[1], n[2])
		emitEmbed(b, one, v)
		fmt.Fprintf(b, "var %sKernel = variantOf(%sKernel, %q, %sSPIRV, %s)\n\n", v, lowerFirst(k.goName), one.name, v,
			local)
	}
}

// emitVariantFields prints the fields of a pass that choose a variant.
func emitVariantFields(b *bytes.Buffer, k *kernel) {
	for _, v := range k.variants {
		for _, line := range k.doc {
			if found := variantLine.FindStringSubmatch(line); found != nil && found[1] == v.variant {
				fmt.Fprintf(b, "%s bool // %s\n", camel(v.variant), found[2])
			}
		}
	}
}

// emitKernelChoice prints the method that returns the kernel of a pass.
func emitKernelChoice(b *bytes.Buffer, k *kernel) {
	fmt.Fprintf(b, "// Kernel returns the compiled kernel.\nfunc (p *%s) Kernel() *vk.Kernel {", k.goName)
	if len(k.variants) == 0 {
		fmt.Fprintf(b, " return &%sKernel }\n\n", lowerFirst(k.goName))
		return
	}
	for _, v := range k.variants {
		fmt.Fprintf(b, "\nif p.%s {\nreturn &%sKernel\n}", camel(v.variant), lowerFirst(v.goName))
	}
	fmt.Fprintf(b, "\nreturn &%sKernel\n}\n\n", lowerFirst(k.goName))
}
