//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// TestProfiles trains a tiny scene on software Vulkan that stands in for each device of vk/profiles, and under each
// shortage that such a device may have. The program trains, or it refuses in words: with a hint, and the exit code of
// what can be tried again. It always asks for one queue.
func TestProfiles(t *testing.T) {
	const unmapped = `"memoryTypes": [{"heapIndex": 0, "propertyFlags": "deviceLocal"},
		{"heapIndex": 1, "propertyFlags": "hostVisible hostCoherent"}]}`
	shortages := []struct{ name, profile, refused string }{
		{"nothing is short", `{}`, ""},
		{"bindings of 128 MiB", `{"maxStorageBufferRange": 134217728}`, ""},
		{"256 MiB of host-visible memory", `{"memoryHeaps": [{"size": 4294967296, "device_local": true},
			{"size": 268435456, "device_local": false}], ` + unmapped, ""},
		{"4 MiB of host-visible memory", `{"memoryHeaps": [{"size": 4294967296, "device_local": true},
			{"size": 4194304, "device_local": false}], ` + unmapped, "memory"},
		{"unified memory", `{"deviceType": "integrated", "memoryHeaps": [{"size": 4294967296, "device_local": true}],
			"memoryTypes": [{"heapIndex": 0, "propertyFlags": "deviceLocal hostVisible hostCoherent"}]}`, ""},
		{"a queue without timestamps", `{"timestampValidBits": 0}`, ""},
		{"lost in mid-step", `{"lostAfter": 5}`, "VK_ERROR_DEVICE_LOST"},
		{"memory refused from the first allocation on", `{"refusedFrom": 1}`, "memory"},
		{"from the second", `{"refusedFrom": 2}`, "memory"},
		{"from the third", `{"refusedFrom": 3}`, "memory"},
		{"from the fourth", `{"refusedFrom": 4}`, "memory"},
		{"from the fifth, which there is not", `{"refusedFrom": 5}`, ""},
	}
	capture, dir := smallScene(t, 300), t.TempDir()
	files := must.Get(filepath.Glob("../../vk/profiles/*.jsonc"))(t)
	if len(files) < 6 {
		t.Fatalf("%d profiles", len(files))
	}
	for _, file := range files {
		for i, s := range shortages {
			short := filepath.Join(dir, "short.jsonc")
			must.Do(t, os.WriteFile(short, []byte(s.profile), 0o644))
			out := filepath.Join(dir, fmt.Sprint(filepath.Base(file), i))
			cmd := exec.Command("vksplat", "train", capture, "-m", out, "--iterations", "3", "--sh-degree", "1",
				"--preset", "3dgs", "--refine-every", "0", "--progress", "none")
			// One thread, because kernels for NVIDIA's GPUs have workgroups wait for each other.
			cmd.Env = append(os.Environ(), "LP_NUM_THREADS=1", "VKSPLAT_VALIDATE=0",
				"VKSPLAT_LIMITS="+must.Get(filepath.Abs(file))(t)+string(filepath.ListSeparator)+short)
			data, err := cmd.CombinedOutput()
			text, code := string(data), cmd.ProcessState.ExitCode()
			trained := err == nil && strings.Contains(text, "trained 3 steps")
			refused := code == fault.ExitTryAgain && s.refused != "" && strings.Contains(text, s.refused) &&
				strings.Contains(text, "\nhint: ")
			if trained != (s.refused == "") || trained == refused {
				t.Errorf("%s with %s: %v\n%s", filepath.Base(file), s.name, cmd.ProcessState, text)
			}
		}
	}
}
