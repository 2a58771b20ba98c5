package main

import (
	"fmt"
	"slices"
	"strings"

	"vksplat/pipeline"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders"
	"vksplat/vk"
)

// form is one form of a kernel to compile.
type form struct {
	vk.Form
	step bool // training steps run it
}

// name is the kernel's with the constants that differ from their defaults, but for those that follow from the device.
func (f *form) name() string {
	name := f.Kernel.Name
	for i, s := range f.Kernel.Specs {
		switch {
		case s.Name == "SUBGROUP_SIZE" || s.Name == "N_SUBGROUPS" || int(s.ID) == f.Kernel.LocalSpecID ||
			f.Spec[i] == s.Default:
		case s.Default == 0 && f.Spec[i] == 1:
			name += " " + s.Name
		default:
			name += fmt.Sprintf(" %s=%d", s.Name, f.Spec[i])
		}
	}
	return name
}

// needed are constants that mean nothing without another, which is switched on with them.
var needed = map[string]string{"PACKED_STATES": "KEEP_STATES"}

// formsFor lists the forms of kernels that are worth compiling for dev: those that training steps run, in their order;
// those of its other units; and either with each constant switched on that is off by default, which is how kernels
// choose between their uses. A kernel that no training runs on dev has its defaults, unless it is for another kind of
// device: it depends on the size of subgroups, or is for processors.
func formsFor(dev *vk.Device, o options) (list []form, err error) {
	asked := strings.Split(o.kernels, ",")
	seen := map[string]bool{}
	add := func(f form) {
		if key := fmt.Sprint(f.Kernel.Name, f.Spec); !seen[key] && (o.kernels == "" ||
			slices.Contains(asked, f.Kernel.Name)) {
			seen[key] = true
			list = append(list, f)
		}
	}
	var others []form
	for _, v := range trainings() {
		units, err := pipeline.Record(dev, v.devices, v.cams, v.cfg, v.o)
		if err != nil {
			return nil, err
		}
		for kind := range recipe.NKinds {
			if units[kind] == nil {
				continue
			}
			for _, f := range units[kind].Forms() {
				if kind == recipe.Step && v.plain {
					add(form{f, true})
				}
				others = append(others, form{Form: f})
			}
		}
	}
	if o.step {
		return list, nil
	}
	for _, k := range shaders.All {
		isOf := func(f form) bool { return f.Kernel == k }
		bound := slices.ContainsFunc(k.Specs, func(s vk.Spec) bool { return s.Name == "SUBGROUP_SIZE" })
		if !slices.ContainsFunc(others, isOf) && !bound && !strings.HasSuffix(k.Name, "_processor") {
			others = append(others, form{Form: defaults(k)})
		}
	}
	for _, f := range others {
		add(f)
		for _, g := range switched(f.Form) {
			add(form{Form: g})
		}
	}
	return list, nil
}

// training is one whose units are recorded; plain if it has no options.
type training struct {
	cfg     recipe.Config
	o       pipeline.TrainerOptions
	cams    []scene.Camera
	devices int
	plain   bool
}

// trainings lists some that run all kernels of training between them, the plain ones first.
func trainings() (list []training) {
	for _, change := range []func(*training){
		func(t *training) { t.plain = true },
		func(t *training) { t.cfg.Exposure, t.cfg.Robust, t.cfg.Carve = true, true, 1 },
		func(t *training) { t.cfg.RefineCameras = true },
		func(t *training) { t.cams[0].Distortion = &scene.Distortion{} },
		func(t *training) {
			t.o.Known, t.o.Normals = make(pipeline.KnownDepths, len(t.cams)), make(pipeline.KnownNormals, len(t.cams))
		},
		func(t *training) { t.devices = 2 },
	} {
		for _, cfg := range []recipe.Config{recipe.Default(), recipe.MCMC()} {
			for _, cfg.Precision = range []string{recipe.PrecisionFull, recipe.PrecisionMixed} {
				t := training{cfg: cfg, cams: make([]scene.Camera, 8), devices: 1}
				t.o.Depths = make([]scene.Depths, len(t.cams))
				for i := range t.cams {
					t.cams[i] = scene.Camera{Width: 64, Height: 48, Fx: 1000, Fy: 1000}
				}
				change(&t)
				list = append(list, t)
			}
		}
	}
	return list
}

// defaults is a kernel with every constant at its default.
func defaults(k *vk.Kernel) vk.Form {
	f := vk.Form{Kernel: k, Spec: make([]uint32, len(k.Specs))}
	for i, s := range k.Specs {
		f.Spec[i] = s.Default
	}
	return f
}

// switched lists f with each constant switched on that is off.
func switched(f vk.Form) (list []vk.Form) {
	for i, s := range f.Kernel.Specs {
		if s.Default != 0 || f.Spec[i] != 0 {
			continue
		}
		on := vk.Form{Kernel: f.Kernel, Spec: slices.Clone(f.Spec)}
		on.Spec[i] = 1
		other := slices.IndexFunc(f.Kernel.Specs, func(o vk.Spec) bool { return o.Name == needed[s.Name] })
		if other >= 0 {
			on.Spec[other] = 1
		}
		list = append(list, on)
	}
	return list
}
