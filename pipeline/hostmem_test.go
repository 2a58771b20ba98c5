//go:build linux

package pipeline

import (
	"os"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
)

// fakeFiles writes files into a folder.
func fakeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func TestHostMemory(t *testing.T) {
	const meminfo = "MemTotal: 16000 kB\nMemFree: 1 kB\nMemAvailable: 9000 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  hostMemory
	}{
		{"nothing", nil, hostMemory{}},
		{"no group", map[string]string{"proc/meminfo": meminfo}, hostMemory{16000 << 10, 9000 << 10}},
		{"v2 without limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"cg/a/b/memory.max": "max\n"}, hostMemory{16000 << 10, 9000 << 10}},
		{"v2 limit of a parent",
			map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "cg/a/b/memory.max": "max\n",
				"cg/a/memory.max": "4096000\n", "cg/a/memory.current": "1096000",
				"cg/a/memory.stat": "anon 5\ninactive_file 96000\n"}, hostMemory{4096000, 3096000}},
		{"v2 in a container", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/elsewhere/x\n",
			"cg/memory.max":     "4096000\n",
			"cg/memory.current": "5000000"}, hostMemory{4096000, 1}},
		{"v1", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "5:cpu:/x\n4:memory:/x\n",
			"cg/memory/x/memory.limit_in_bytes": "2000000\n",
			"cg/memory/x/memory.usage_in_bytes": "500000", "cg/memory/memory.limit_in_bytes": "9223372036854771712"},
			hostMemory{2000000, 1500000}},
		{"broken", map[string]string{"proc/meminfo": "MemTotal: x\n", "proc/self/cgroup": "hello\n0::/\n",
			"cg/memory.max": "-3\n"}, hostMemory{}},
	} {
		dir := fakeFiles(t, c.files)
		if got := readHostMemory(filepath.Join(dir, "proc"), filepath.Join(dir, "cg")); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if m := systemMemory(); m.Total <= 0 || m.Available <= 0 || m.Available > m.Total {
		t.Errorf("this machine has %+v", m)
	}
}

func TestMemoryBudgets(t *testing.T) {
	m := hostMemory{Total: 16 << 30, Available: 8 << 30}
	for _, c := range []struct {
		name         string
		vram, ram    string
		unified      bool
		device, host int64
	}{
		{"discrete", "", "", false, 10 << 30, 4 << 30},
		{"discrete, both given", "1GiB", "2GiB", false, 1 << 30, 2 << 30},
		{"discrete, share of RAM", "", "50%", false, 10 << 30, 8 << 30},
		{"unified", "", "", true, 2912 << 20, 1184 << 20},
		{"unified, RAM given", "", "2GiB", true, 1376 << 20, 672 << 20},
		{"unified, little RAM given", "", "236MiB", true, 28 << 20, 208 << 20},
		{"unified, less than the process takes", "", "50MiB", true, 1, 50 << 20},
		{"unified, next to nothing given", "", "1K", true, 1, 1 << 10},
		{"unified, VRAM given", "1GiB", "", true, 1 << 30, 3 << 30},
		{"unified, more VRAM given than is half of what is available", "6GiB", "", true, 6 << 30, 1184 << 20},
		{"unified, both given", "1GiB", "3GiB", true, 1 << 30, 2 << 30},
		{"unified, both given and little left", "200MiB", "300MiB", true, 200 << 20, 100 << 20},
	} {
		device, host, err := memoryBudgets(DeviceOptions{MaxVRAM: c.vram, MaxRAM: c.ram}, 10<<30, c.unified, m)
		if err != nil || device != c.device || host != c.host {
			t.Errorf("%s: %d and %d, %v; want %d and %d", c.name, device, host, err, c.device, c.host)
		}
	}
	if _, _, err := memoryBudgets(DeviceOptions{MaxRAM: "much"}, 1<<30, false, m); err == nil {
		t.Error("any word is an amount")
	}
}

// TestWhatIsNotGo wants what the driver took to lower the limit of the heap, within bounds, and not to count device
// memory where that is RAM.
func TestWhatIsNotGo(t *testing.T) {
	const planned = 300 << 20
	for _, c := range []struct {
		unified bool
		seen    int64
		want    int64
	}{{false, 0, planned}, {false, planned + 5, planned + 5}, {false, 4 * planned, planned + processBytes/4},
		{true, 4 * planned, planned}} {
		p := &Plan{Unified: c.unified, Host: HostPlan{Staging: planned / 3, outside: 2 * planned / 3}}
		if got := p.notGo(c.seen); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	for _, bytes := range []int64{0, 1, 18, 19, 1 << 20, 12345678901} {
		if b := withMargin(bytes); b-marginOf(b) < bytes {
			t.Errorf("a budget of %d leaves %d of %d", b, b-marginOf(b), bytes)
		}
	}
}
