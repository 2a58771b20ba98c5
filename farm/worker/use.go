package worker

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"vksplat/farm/queue"
	"vksplat/farm/task"
)

// uses is what is known of the use of a node's devices.
type uses struct {
	lock sync.Mutex
	by   map[string]queue.DeviceUse // by the device's ID, of those that a task works on
}

// pciFolder holds what Linux says of devices on the PCI bus.
const pciFolder = "/sys/bus/pci/devices"

// use lists what the node's devices do now. What no child says, some drivers do.
func (n *node) use() []queue.DeviceUse {
	list := make([]queue.DeviceUse, 0, len(n.Devices))
	for i := range n.Devices {
		d := &n.Devices[i]
		n.uses.lock.Lock()
		u := n.uses.by[d.ID]
		n.uses.lock.Unlock()
		u.Device, u.Name = d.ID, d.Name
		ask(&u, pciFolder, d)
		list = append(list, u)
	}
	return list
}

// ask fills in what is missing of a device's use from its driver's files, which AMD's has, and its memory from what was found at the start.
func ask(u *queue.DeviceUse, folder string, d *Device) {
	if d.PCI != "" {
		dir := filepath.Join(folder, d.PCI)
		if percent, known := readNumber(filepath.Join(dir, "gpu_busy_percent")); known && u.Busy == nil && percent <= 100 {
			share := float64(percent) / 100
			u.Busy = &share
		}
		used, knownUsed := readNumber(filepath.Join(dir, "mem_info_vram_used"))
		total, knownTotal := readNumber(filepath.Join(dir, "mem_info_vram_total"))
		if u.Bytes == 0 && knownUsed && knownTotal {
			u.Bytes, u.Budget = used, total
		}
	}
	if u.Budget == 0 {
		u.Budget = d.MemoryBytes
	}
}

// readNumber reads a file that holds a number, 0 or more.
func readNumber(file string) (n int64, known bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil && n >= 0
}

// using notes what an attempt does on its device; nil, or with Free: nothing any more. Others may have it then, however long the store takes.
func (r *run) using(p *task.Progress) {
	if r.device == nil {
		return
	}
	if p == nil || p.Free {
		p = nil
		r.unlock()
	}
	r.uses.lock.Lock()
	defer r.uses.lock.Unlock()
	if p == nil {
		delete(r.uses.by, r.device.ID)
		return
	}
	u := queue.DeviceUse{Bytes: p.Device.Bytes, Budget: p.Device.Budget, Job: r.lease.Job, Task: r.lease.Task.Name, Index: r.lease.Index,
		Step: int64(p.Step), Of: int64(p.Of), Rate: p.Rate, Unit: p.Unit}
	if b := p.Device.Busy; b != nil && *b >= 0 && *b <= 1 {
		u.Busy = b
	}
	if r.uses.by == nil {
		r.uses.by = map[string]queue.DeviceUse{}
	}
	r.uses.by[r.device.ID] = u
}

// sendPreview hands a small picture on that the child left in a file. Where that is gone, the task is done and has cleared its folder away.
func (r *run) sendPreview(file string) error {
	data, err := readPreview(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.lease.Preview(data)
}

func readPreview(file string) ([]byte, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // which could be waited for without end
		return nil, fmt.Errorf("%s is no file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	return io.ReadAll(io.LimitReader(f, queue.MaxPreview+1))
}
