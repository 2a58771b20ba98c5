//go:build unix

package task

import (
	"context"
	"errors"
	"strings"
	"testing"

	"vksplat/farm/store"
)

func TestWithScene(t *testing.T) {
	plan := "{\n  \"format\": \"x\",\n  \"capture\": {\n    \"scene\": \"/a \\\"b\",\n    \"images\": \"\"\n  }\n}\n"
	got, err := withScene([]byte(plan), `/new "place`)
	if want := strings.Replace(plan, `"/a \"b"`, `"/new \"place"`, 1); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	plan = `{"other": {"scene": "a"}, "capture":{"images": ["scene"], "scene" : "a"} }`
	got, err = withScene([]byte(plan), "b")
	if want := `{"other": {"scene": "a"}, "capture":{"images": ["scene"], "scene" : "b"} }`; err != nil ||
		string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	for _, bad := range []string{"", "{}", `{"capture": 5}`, `{"capture": {}, "scene": "a"}`,
		`{"capture": {"scene": "a"}`} {
		if _, err := withScene([]byte(bad), "x"); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestPins(t *testing.T) {
	f := newFarm(t, "vram_min_mb = 100\ndisk_min_gb = 0")
	o := f.options(0, 1, "a")
	o.Selected.MemoryBytes = 99 << 20
	if _, err := Run(context.Background(), o); !errors.Is(err, store.ErrSetup) {
		t.Error(err)
	}
}

// TestDeviceIs has a pin mean a device in every way in which tools print UUIDs and PCI addresses, and nothing else.
func TestDeviceIs(t *testing.T) {
	d := Device{Name: "NVIDIA H200", UUID: "aaaa0000-1111-2222-3333-444455556666", PCI: "0000:c1:00.0"}
	for pin, want := range map[string]bool{
		"NVIDIA H200": true, d.UUID: true, "GPU-" + strings.ToUpper(d.UUID): true,
		"aaaa0000111122223333444455556666": true, "0000:C1:00.0": true, "00000000:C1:00.0": true,
		"nvidia": false, "GPU-": false, "-": false, "0": false, "aaaa0000": false, "0000:c2:00.0": false,
		"0001:c1:00.0": false, "c1:00.0": false,
	} {
		if d.Is(pin) != want {
			t.Errorf("%q: %v", pin, !want)
		}
	}
	if (Device{Name: "x"}).Is("GPU-") || (Device{Name: "x"}).Is("") {
		t.Error("a device without UUID and address is pinned to by nothing")
	}
}
