package flow

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"vksplat/farm/spec"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/task"
)

// TestClasses wants a device to join the classes of exactly those tasks that it can do, however pins are written.
func TestClasses(t *testing.T) {
	card := task.Device{Name: "NVIDIA H200", UUID: "5a7b0c1d-0000-1111-2222-333344445555", PCI: "0000:c1:00.0",
		Driver: "NVIDIA 570.1", MemoryBytes: 24_564 << 20}
	joined := ClassesOf(&card)
	for _, c := range []struct {
		limits, pin string
		can         bool
	}{
		{"", "", true},
		{"limits.vram_min_mb = 1\n", "", true},
		{"limits.vram_min_mb = 24000\n", "", true},
		{"limits.vram_min_mb = 24600\n", "", false},
		{"limits.vram_min_mb = 900000\n", "", false},
		{"", "pin.device = \"NVIDIA H200\"\n", true},
		{"", "pin.device = \"NVIDIA H100\"\n", false},
		{"", "pin.device = \"GPU-5A7B0C1D-0000-1111-2222-333344445555\"\n", true},
		{"", "pin.device = \"5a7b0c1d000011112222333344445555\"\n", true},
		{"", "pin.device = \"00000000:C1:00.0\"\n", true},
		{"", "pin.device = \"0000:c2:00.0\"\n", false},
		{"", "pin.driver = \"NVIDIA 570.1\"\n", true},
		{"", "pin.driver = \"NVIDIA 570.2\"\n", false},
		{"", "pin.device = \"NVIDIA H200\"\npin.driver = \"NVIDIA 570.1\"\n", true},
		{"", "pin.device = \"NVIDIA H200\"\npin.driver = \"older\"\n", false},
	} {
		_, plan := spectest.Job(t,
			"version = 1\nname = \"j\"\n[[task]]\nkind = \"train\"\nsource = \"x\"\n"+c.limits+c.pin)
		of := &plan.Tasks[0]
		if got := slices.Contains(joined, ClassOf(of)); got != c.can || got != (card.Lacks(of) == "") {
			t.Errorf("%s%s: class %s, joined %v, and %q", c.limits, c.pin, ClassOf(of), got, card.Lacks(of))
		}
	}
	_, plan := spectest.Job(t, "version = 1\nname = \"j\"\n[[task]]\nkind = \"demo\"\n")
	class := ClassOf(&plan.Tasks[0])
	without := ClassesWithout(map[*spec.Kind]error{spec.KindDemo: spec.ErrSpec})
	if !slices.Contains(ClassesWithout(nil), class) || slices.Contains(joined, class) ||
		slices.Contains(without, class) {
		t.Errorf("class %s", class)
	}
}

// TestJobID makes words of names, different ones of different names.
func TestJobID(t *testing.T) {
	form := regexp.MustCompile(`^anna/[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)
	seen := map[string]string{}
	for _, name := range []string{"film", "two-gardens", "Film", "film two", "film  two", "Zwei Gärten", "庭", "a", "x.",
		strings.Repeat("long", 16), strings.Repeat("Long", 16), "_"} {
		id := JobID("anna", name)
		if !form.MatchString(id) || seen[id] != "" || OwnerOf(ChunkID(id, 3)) != "anna" {
			t.Errorf("%q has the id %q, as %q", name, id, seen[id])
		}
		seen[id] = name
	}
	if JobID("anna", "two-gardens") != "anna/two-gardens" {
		t.Error("a name that is a word is another one as an id")
	}
}

// TestQueueText says for people what tasks wait for.
func TestQueueText(t *testing.T) {
	gpu := &task.Device{Name: "Some GPU", MemoryBytes: 24 << 30}
	for _, class := range append(ClassesOf(gpu), ClassesWithout(nil)...) {
		text := QueueText(Queue("big", class))
		named := strings.Contains(text, "the device")
		if !strings.HasPrefix(text, "a machine of the pool big") || strings.Contains(text, "/") && !named {
			t.Errorf("%s: %s", class, text)
		}
	}
	if text := QueueText(Queue("any", memoryClass(24))); text != "a machine of the pool any with a device of 24 GB" {
		t.Error(text)
	}
}

// TestIsClass wants the classes of tasks and devices, and no others.
func TestIsClass(t *testing.T) {
	card := task.Device{Name: "NVIDIA \"H200\" (a/b)", UUID: "5a7b0c1d-0000-1111-2222-333344445555",
		PCI: "0000:c1:00.0", Driver: "NVIDIA 570.1"}
	for _, class := range append(ClassesOf(&card), ClassesWithout(nil)...) {
		if is, pin := IsClass(class); !is || pin != strings.HasPrefix(class, "device/") {
			t.Errorf("%s: %v, of a device %v", class, is, pin)
		}
	}
	for _, class := range []string{"", "cpu", "cpu/", "cpu/made-up", "gpu2", "vram-", "vram-25", "vram-+24", "vram-24/x",
		"device/", "device/x", "device/x/", "device/x/y/z", "device/x y/*", "device/=2f/*", "device/**/*",
		"device/" + strings.Repeat("x", 900) + "/*"} {
		if is, _ := IsClass(class); is {
			t.Errorf("%q is a class", class)
		}
	}
}
