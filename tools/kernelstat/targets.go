package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// target is one GPU to compile for: the command and the environment in which its driver believes to have it.
type target struct {
	vendor, gpu string
	command     []string
	env         []string
}

// driver is one of Mesa's, which a shim serves in place of the kernel; variable says of which GPU.
type driver struct {
	vendor, icd, shim, variable string
	gpus                        []string // NAME or NAME=VALUE
}

var drivers = []driver{
	{"AMD", "radeon", "amdgpu", "AMDGPU_GPU_ID", []string{"vega20", "navi10", "navi21", "navi31", "gfx1201"}},
	{"Intel", "intel", "intel", "INTEL_STUB_GPU_PLATFORM",
		[]string{"skl", "icl", "tgl", "dg2", "mtl", "lnl", "bmg", "ptl"}},
	{"NVIDIA", "nouveau", "nouveau", "NOUVEAU_CHIPSET", []string{"tu102=162", "ga102=172"}},
	{"Qualcomm", "freedreno", "freedreno", "FD_GPU_ID", []string{"a660=660", "a740=740"}},
	{"Apple", "asahi", "asahi", "UNUSED", []string{"m1"}},
}

// families of AMD are what older Mesa compiles for without any shim.
var families = []string{"vega10", "navi10", "navi21", "gfx1036", "gfx1100"}

const hostDriver = "/usr/share/vulkan/icd.d/radeon_icd.x86_64.json"

// targets lists the GPUs to compile for.
func targets(o options) (list []target, err error) {
	switch {
	case o.here:
		return []target{{vendor: "This machine", gpu: "here"}}, nil
	case o.mesa != "":
		list, err = mesaTargets(o.mesa)
	default:
		_, err = os.Stat(hostDriver)
		for _, family := range families {
			list = append(list, target{vendor: "AMD", gpu: family,
				env: append(only(hostDriver), "RADV_FORCE_FAMILY="+family)})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find Mesa: %w; Debian's package is mesa-vulkan-drivers, mesa.sh gets another", err)
	}
	asked := strings.Split(o.gpus, ",")
	return slices.DeleteFunc(list, func(t target) bool { return o.gpus != "" && !slices.Contains(asked, t.gpu) }), nil
}

// mesaTargets lists those of the Mesa in a folder, which runs with the libraries there.
func mesaTargets(folder string) (list []target, err error) {
	if folder, err = filepath.Abs(folder); err != nil {
		return nil, err
	}
	lib := filepath.Join(folder, "usr/lib/x86_64-linux-gnu")
	for _, d := range drivers {
		icd := filepath.Join(folder, "usr/share/vulkan/icd.d", d.icd+"_icd.json")
		shim := filepath.Join(lib, "lib"+d.shim+"_noop_drm_shim.so")
		for _, file := range []string{icd, shim} {
			if _, err := os.Stat(file); err != nil {
				return nil, err
			}
		}
		for _, gpu := range d.gpus {
			name, value, found := strings.Cut(gpu, "=")
			if !found {
				value = name
			}
			list = append(list, target{d.vendor, name,
				[]string{filepath.Join(lib, "ld-linux-x86-64.so.2"), "--library-path", lib, "--preload", shim},
				append(only(icd), d.variable+"="+value)})
		}
	}
	return list, nil
}

// only is an environment in which Vulkan has one driver.
func only(icd string) []string { return []string{"VK_ICD_FILENAMES=" + icd, "VK_DRIVER_FILES=" + icd} }
