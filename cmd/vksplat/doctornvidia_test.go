package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestNVIDIANotes wants a word about what keeps Vulkan from an NVIDIA GPU, and none where nothing does.
func TestNVIDIANotes(t *testing.T) {
	const (
		driver = "proc/driver/nvidia/version"
		icd    = "usr/share/vulkan/icd.d/nvidia_icd.json"
		docker = ".dockerenv"
		mig    = "proc/driver/nvidia/capabilities/gpu0/mig/gi9/access"
	)
	cases := []struct {
		name  string
		files []string
		env   map[string]string
		want  []string
	}{
		{"no NVIDIA", []string{docker}, nil, nil},
		{"all well", []string{driver, icd}, nil, nil},
		{"no ICD", []string{driver}, nil, []string{"no ICD of it"}},
		{"an ICD in the environment", []string{driver},
			map[string]string{"VK_DRIVER_FILES": "/opt/a.json:/opt/nvidia_icd.json"}, nil},
		{"a container for CUDA", []string{driver, docker},
			map[string]string{"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
			[]string{"(compute,utility) lacks graphics"}},
		{"a container with nothing", []string{driver}, map[string]string{"NVIDIA_VISIBLE_DEVICES": "all"},
			[]string{"(not set) lacks graphics"}},
		{"a container without the ICD", []string{driver, docker},
			map[string]string{"NVIDIA_DRIVER_CAPABILITIES": "all"}, []string{"bind the host's"}},
		{"a container as it should be", []string{driver, docker, icd},
			map[string]string{"NVIDIA_DRIVER_CAPABILITIES": "compute,graphics"}, nil},
		{"MIG", []string{driver, icd, mig}, nil, []string{"divided by MIG"}},
	}
	for _, c := range cases {
		files := fstest.MapFS{}
		for _, name := range c.files {
			files[name] = &fstest.MapFile{}
		}
		notes := nvidiaNotes(files, func(name string) string { return c.env[name] })
		if len(notes) != len(c.want) {
			t.Errorf("%s: %q, want %q", c.name, notes, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(notes[i], want) {
				t.Errorf("%s: %q, want %q", c.name, notes[i], want)
			}
		}
	}
}
