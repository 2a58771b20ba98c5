// Package failure names the kinds of failure that pipeline shares with the packages below it.
package failure

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"vksplat/internal/fault"
	"vksplat/vk"
)

// Kinds of failure, for errors.Is. Package pipeline hands them on under the same names.
var (
	// ErrDiverged says that the loss, the model or a picture of it is no longer finite.
	ErrDiverged = fault.Sentinel(fault.ErrData, "training diverged",
		"lower the learning rates, then start over or resume from an earlier checkpoint ("+
			fault.Setting("resume")+").")
	// ErrTooSmall says that the memory budget cannot hold what was asked for.
	ErrTooSmall = fault.Sentinel(fault.ErrMachine, "device memory budget too small",
		fmt.Sprintf("%s, use smaller photos (%s), start with fewer points (%s) or allow fewer splats (%s).",
			RaiseMemory(), fault.Setting("downscale"), fault.Setting("init-grid"), fault.Setting("max-splats")))
	// ErrLittleRAM says that the budget of host memory cannot hold what was asked for.
	ErrLittleRAM = fault.Sentinel(fault.ErrMachine, "host memory budget too small",
		fmt.Sprintf("raise %s, or use smaller photos (%s).", fault.Setting("max-ram"),
			fault.Setting("downscale")))
)

// RaiseMemory is the remedy of little device memory where the device is not known.
func RaiseMemory() string {
	return fmt.Sprintf("raise %s (%s where the device uses RAM)", fault.Setting("max-vram"), fault.Setting("max-ram"))
}

// IsShortage reports whether device memory ran short.
func IsShortage(err error) bool {
	return errors.Is(err, vk.ErrOutOfMemory) || errors.Is(err, ErrTooSmall)
}

// AnyOf makes a hint of what helps; "" is left out.
func AnyOf(ways ...string) string {
	ways = slices.DeleteFunc(ways, func(way string) bool { return way == "" })
	last := len(ways) - 1
	switch last {
	case 0:
		return ways[0] + "."
	case 1:
		return ways[0] + ", or " + ways[1] + "."
	}
	return strings.Join(ways[:last], ", ") + ", or " + ways[last] + "."
}
