package main

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// nvidiaNotes says why Vulkan may not see an NVIDIA GPU whose kernel driver is there: no ICD, a container without the
// capability graphics, MIG. The files are those below the root folder.
func nvidiaNotes(files fs.FS, env func(string) string) (notes []string) {
	exists := func(patterns ...string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			found, err := fs.Glob(files, p)
			return err == nil && len(found) > 0
		})
	}
	if !exists("proc/driver/nvidia/version", "dev/nvidiactl") {
		return nil
	}
	capabilities := env("NVIDIA_DRIVER_CAPABILITIES")
	words := strings.Split(capabilities, ",")
	inContainer := exists(".dockerenv", "run/.containerenv", "singularity.d") || env("NVIDIA_VISIBLE_DEVICES") != ""
	graphics := slices.Contains(words, "graphics") || slices.Contains(words, "all")
	icd := exists("usr/share/vulkan/icd.d/nvidia*.json", "etc/vulkan/icd.d/nvidia*.json",
		"usr/local/share/vulkan/icd.d/nvidia*.json") || namesNVIDIA(env)
	switch {
	case inContainer && !graphics:
		notes = append(notes, "the container's NVIDIA_DRIVER_CAPABILITIES ("+orNone(capabilities)+
			") lacks graphics, without which the container runtime brings no Vulkan driver: start it with "+
			"NVIDIA_DRIVER_CAPABILITIES=compute,graphics,utility")
	case !icd && inContainer:
		notes = append(notes, "no ICD of NVIDIA (nvidia_icd.json) is in the container: bind the host's "+
			"/usr/share/vulkan/icd.d/nvidia_icd.json, or update the NVIDIA container toolkit")
	case !icd:
		notes = append(notes, "NVIDIA's kernel driver is there, but no ICD of it (nvidia_icd.json in "+
			"/usr/share/vulkan/icd.d or /etc/vulkan/icd.d): install the driver's Vulkan part, as in libnvidia-gl or "+
			"nvidia-vulkan-icd")
	}
	if exists("proc/driver/nvidia/capabilities/gpu*/mig/gi*") {
		notes = append(notes, "a GPU is divided by MIG, and its parts may have no Vulkan: ask the administrator for a "+
			"whole GPU (nvidia-smi -mig 0), if it is not listed below")
	}
	return notes
}

// namesNVIDIA says whether the environment names an ICD of NVIDIA's.
func namesNVIDIA(env func(string) string) bool {
	for _, name := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"} {
		for file := range strings.SplitSeq(env(name), ":") {
			if strings.HasPrefix(path.Base(file), "nvidia") {
				return true
			}
		}
	}
	return false
}

func orNone(s string) string {
	if s == "" {
		return "not set"
	}
	return s
}
