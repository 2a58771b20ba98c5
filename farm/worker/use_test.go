package worker

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"vksplat/farm/queue"
	"vksplat/farm/task"
	"vksplat/scene"
)

// TestAsk reads a driver's files where nobody else says what a device does.
func TestAsk(t *testing.T) {
	bus, half := t.TempDir(), 0.5
	write := func(device, name, text string) {
		dir := filepath.Join(bus, device)
		if err := errors.Join(os.MkdirAll(dir, 0o777), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	write("0000:03:00.0", "gpu_busy_percent", "87\n")
	write("0000:03:00.0", "mem_info_vram_used", "3000\n")
	write("0000:03:00.0", "mem_info_vram_total", "8000\n")
	write("0000:04:00.0", "gpu_busy_percent", "what?\n")
	write("0000:05:00.0", "gpu_busy_percent", "101")
	write("0000:05:00.0", "mem_info_vram_used", "-1")
	for _, c := range []struct {
		pci           string
		use           queue.DeviceUse
		busy          float64 // -1: not known
		bytes, budget int64
	}{
		{"", queue.DeviceUse{}, -1, 0, 100},
		{"0000:03:00.0", queue.DeviceUse{}, 0.87, 3000, 8000},
		{"0000:03:00.0", queue.DeviceUse{Busy: &half, Bytes: 7, Budget: 9}, 0.5, 7, 9},
		{"0000:04:00.0", queue.DeviceUse{}, -1, 0, 100},
		{"0000:05:00.0", queue.DeviceUse{}, -1, 0, 100},
		{"0000:06:00.0", queue.DeviceUse{}, -1, 0, 100},
	} {
		u := c.use
		ask(&u, bus, &Device{PCI: c.pci, MemoryBytes: 100})
		busy := -1.0
		if u.Busy != nil {
			busy = *u.Busy
		}
		if busy != c.busy || u.Bytes != c.bytes || u.Budget != c.budget {
			t.Errorf("%s %+v: busy %v, %d of %d", c.pci, c.use, busy, u.Bytes, u.Budget)
		}
	}
}

// TestSendPreview wants nothing but a small JPEG file to be sent: what else a child names is refused before anybody is told of it.
func TestSendPreview(t *testing.T) {
	dir := t.TempDir()
	noise := scene.Image{Width: 8, Height: 8, Pix: make([]uint8, 256)}
	good, err := noise.JPEG(50)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"text": []byte("<script>"), "long": append(good, make([]byte, queue.MaxPreview)...), "empty": nil}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	r := &run{lease: &queue.Lease{}}
	for name := range files {
		if err := r.sendPreview(filepath.Join(dir, name)); !errors.Is(err, queue.ErrPreview) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := r.sendPreview(dir); err == nil {
		t.Error("a folder is sent")
	}
	if err := r.sendPreview(filepath.Join(dir, "gone")); err != nil {
		t.Errorf("somebody is warned of the picture of a task that is done: %v", err)
	}
}

// TestDeviceIsFree gives a device to others when a task says that it needs it no more, while its results still go up.
func TestDeviceIsFree(t *testing.T) {
	d := &Device{ID: "uuid", Name: "GPU"}
	n := &node{Options: Options{Locks: t.TempDir(), Devices: []Device{*d}}}
	if _, err := n.ready(d); err != nil {
		t.Fatal(err)
	}
	r := &run{node: n, device: d, lease: &queue.Lease{Job: "j"}}
	unlock, err := r.lockDevice(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.unlock = sync.OnceFunc(unlock)
	for _, p := range []task.Progress{{Task: "t", Message: "train"}, {Task: "t", Message: "committing results", Free: true}, {Task: "t", Message: "waiting for the store", Free: true}} {
		r.using(&p)
		if free, err := n.isFree(d); free != p.Free || err != nil {
			t.Errorf("%s: free %v, %v", p.Message, free, err)
		}
		if use := n.use()[0]; (use.Job == "") != p.Free {
			t.Errorf("%s: %+v", p.Message, use)
		}
	}
}
