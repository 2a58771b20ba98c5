package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vksplat/internal/child"
)

// deviceTimeout bounds how long drivers may take to say what there is.
const deviceTimeout = time.Minute

// Devices asks a child, which a bad driver may crash or hang, for the devices of this machine: all that can be used, or
// with a choice (an index, a UUID or auto) that one.
func Devices(ctx context.Context, program, choice string) ([]Device, error) {
	ctx, cancel := context.WithTimeout(ctx, deviceTimeout)
	defer cancel()
	args := []string{"devices", "--json"}
	if choice != "" {
		args = append(args, "--device="+choice)
	}
	var all []struct {
		Device
		Usable bool
	}
	if err := child.Ask(ctx, program, args, child.Options{Apart: true, Grace: time.Second}, &all); err != nil {
		return nil, fmt.Errorf("ask for devices: %w", err)
	}
	var list []Device
	for _, d := range all {
		if d.Usable {
			list = append(list, d.Device)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("no usable Vulkan device")
	}
	return list, nil
}
