package pipeline

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func systemMemory() hostMemory { return readHostMemory("/proc", "/sys/fs/cgroup") }

// readHostMemory is systemMemory with the roots of both file systems.
func readHostMemory(proc, cgroup string) hostMemory {
	info := readNumbers(filepath.Join(proc, "meminfo"))
	m := hostMemory{Total: info["MemTotal:"] << 10, Available: info["MemAvailable:"] << 10}
	for _, g := range memoryGroups(filepath.Join(proc, "self", "cgroup"), cgroup) {
		limit, used, ok := g.read()
		if !ok {
			continue
		}
		if m.Total == 0 || limit < m.Total {
			m.Total = limit
		}
		if free := max(limit-used, 1); m.Available == 0 || free < m.Available {
			m.Available = free
		}
	}
	return m
}

// memoryGroup is a folder of a control group.
type memoryGroup struct {
	dir            string
	limit, used    string // files
	reclaimableKey string // in memory.stat: file pages that go when memory is short
}

// memoryGroups lists the control groups of the process, with all that they lie in: the limit of each holds. In a
// container the path is often that of the host and not there: the root is the container's own group then.
func memoryGroups(self, root string) (list []memoryGroup) {
	data, err := os.ReadFile(self)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		g := memoryGroup{dir: root, limit: "memory.max", used: "memory.current", reclaimableKey: "inactive_file"}
		if parts[1] == "memory" {
			g = memoryGroup{filepath.Join(root, "memory"), "memory.limit_in_bytes", "memory.usage_in_bytes",
				"total_inactive_file"}
		} else if parts[0] != "0" {
			continue
		}
		for path := filepath.Clean("/" + parts[2]); ; path = filepath.Dir(path) {
			here := g
			here.dir = filepath.Join(g.dir, path)
			list = append(list, here)
			if path == "/" {
				break
			}
		}
	}
	return list
}

// read returns the group's limit and what it uses that cannot be reclaimed; ok is false without a limit.
func (g memoryGroup) read() (limit, used int64, ok bool) {
	limit, ok = readNumber(filepath.Join(g.dir, g.limit))
	if !ok || limit >= noLimit {
		return 0, 0, false
	}
	used, _ = readNumber(filepath.Join(g.dir, g.used))
	used -= readNumbers(filepath.Join(g.dir, "memory.stat"))[g.reclaimableKey]
	return limit, max(used, 0), true
}

// readNumber reads a file of one number; "max" is none.
func readNumber(path string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil && n >= 0
}

// readNumbers reads a file of lines that begin with a name and a number.
func readNumbers(path string) map[string]int64 {
	list := map[string]int64{}
	data, err := os.ReadFile(path)
	if err != nil {
		return list
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) >= 2 {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				list[f[0]] = n
			}
		}
	}
	return list
}

// residentBytes returns the bytes of memory that the process has resident, 0 if the system does not tell.
func residentBytes() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data)) // in pages: size, resident, ...
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
