package pipeline

import (
	"fmt"
	"math"
	"runtime/metrics"
	"sort"

	"vksplat/internal/fault"
)

// hostMemory is the RAM of the machine as this process may use it: what the control group of a container grants, where
// that is less. Bytes.
type hostMemory struct {
	Total     int64 `json:"total"`     // 0: the system does not tell
	Available int64 `json:"available"` // without swapping; 0: the system does not tell
}

// unknownRAM is assumed to be available where the system does not say.
const unknownRAM = 8 << 30

// available returns the bytes that can be had.
func (m hostMemory) available() int64 {
	if m.Available > 0 {
		return m.Available
	}
	return unknownRAM
}

// total returns the bytes that a percentage is of.
func (m hostMemory) total() int64 {
	if m.Total > 0 {
		return m.Total
	}
	return m.available()
}

// hostBudget reads --max-ram: bytes or a percentage of all RAM; by default half of what is available.
func hostBudget(s string, m hostMemory) (int64, error) {
	if s == "" {
		return m.available() / 2, nil
	}
	budget, err := parseBudget(s, (m.total()*8+9)/10)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", fault.Setting("max-ram"), err)
	}
	return budget, nil
}

// processBytes is about what the program takes beside what is planned and beside its code and what the driver takes
// when the device is opened: stacks, garbage, and the driver's memory for compiled kernels.
const processBytes = 96 << 20

// Shares of a pool, beside processBytes. Most of the first part is the host's: drivers take 50 to 100 MiB of it,
// whatever is trained, and without that nothing is. How much a driver took in this process decides nothing here: the
// model's ceiling follows from the shares, and equal runs have equal ceilings.
const (
	firstPart = 160 << 20         // of the pool
	firstHost = firstPart / 5 * 4 // of it, the host's
	// the most of the rest that the host gets unless the device's budget was given
	hostMost  = 4 << 30
	mostShare = int64(processBytes + firstHost + hostMost) // the most that the host has then
)

// unifiedShares divides one pool of memory between the device and the host. The host has what the process takes, four
// fifths of the first part of the rest and a quarter of what is left. Where --max-vram was given the device has that,
// and the host what is left.
func unifiedShares(pool, vram int64, vramGiven bool) (device, host int64) {
	rest := max(pool-processBytes, 0)
	first := min(rest, firstPart)
	host = min(pool, processBytes+first/5*4+min((rest-first)/4, hostMost))
	device = max(pool-host, 1)
	if vramGiven {
		device, host = vram, max(pool-vram, 1)
	}
	return device, host
}

// smallestPool returns the smallest pool, rounded up to a MiB, whose shares are at least these.
func smallestPool(device, host, vram int64, vramGiven bool) int64 {
	return int64(sort.Search(int((5*(device+host)+processBytes)>>20+1), func(pool int) bool {
		d, h := unifiedShares(int64(pool)<<20, vram, vramGiven)
		return d >= device && h >= host
	})) << 20
}

// HeapLimit returns the bytes that Go's memory may take so that the process keeps to --max-ram, while a capture is
// loaded and before a plan says more. This package only computes limits: a process has one, which is its program's.
func HeapLimit(o DeviceOptions) (int64, error) {
	budget, err := hostBudget(o.MaxRAM, systemMemory())
	return budget - marginOf(budget) - processBytes/2, err
}

// HeapLimit is the function of that name once the driver is loaded, and has taken its part.
func (d *Device) HeapLimit() int64 { return d.host - marginOf(d.host) - processBytes/2 - d.driver }

func goBytes() int64 {
	m := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(m)
	return int64(m[0].Value.Uint64()) - int64(m[1].Value.Uint64())
}

// noLimit is more than any machine has: control groups without a limit give a number of this size.
const noLimit = math.MaxInt64 / 2
