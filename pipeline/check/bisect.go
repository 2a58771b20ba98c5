package check

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"vksplat/vk"
)

// mostHalvings leaves one splat of the largest case.
const mostHalvings = 12

// Bisect looks for a case that fails on a device (see Doctor) and halves its inputs while it fails. It writes to w what
// it finds, and returns the smallest run that fails, with an error; nil where no case does.
func Bisect(w io.Writer, device string) (r *Repro, err error) {
	err = onDevice(device, func(open func() (*vk.Device, error)) error {
		r, err = bisect(&printer{w: w}, Cases(), open)
		return err
	})
	return r, err
}

// Replay runs what Bisect returned on a device.
func Replay(device string, r *Repro) error {
	return onDevice(device, func(open func() (*vk.Device, error)) error {
		d, err := open()
		if err != nil {
			return err
		}
		return r.Run(d)
	})
}

// onDevice calls f with what opens the device, again if it was lost.
func onDevice(device string, f func(open func() (*vk.Device, error)) error) error {
	in, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		return err
	}
	var d *vk.Device
	err = f(func() (*vk.Device, error) {
		if d != nil && !d.Lost() {
			return d, nil
		}
		if d != nil {
			_ = d.Close() // it was lost, which has been reported
		}
		info, _, err := in.Select(device)
		if err != nil {
			return nil, err
		}
		d, err = in.NewDevice(info, vk.DeviceOptions{Budget: info.DefaultBudget()})
		return d, err
	})
	if d != nil {
		err = errors.Join(err, d.Close())
	}
	return errors.Join(err, in.Close())
}

func bisect(p *printer, cases []Case, open func() (*vk.Device, error)) (*Repro, error) {
	for _, c := range cases {
		d, err := open()
		if err != nil {
			return nil, err
		}
		if !c.Fits(d) {
			continue
		}
		best, err := c.attempt(d, 0)
		if err == nil {
			continue
		}
		p.f("%v\n", err)
		failed := fmt.Errorf("%w: %w", ErrKernels, err)
		if best == nil {
			return nil, failed
		}
		for n := 1; n <= mostHalvings; n++ {
			if d, err = open(); err != nil {
				return best, errors.Join(failed, err)
			}
			r, err := c.attempt(d, n)
			if r != nil && r.alike(best) && r.bytes() < best.bytes() {
				p.f("halved %d times, in %d bytes: %v\n", n, r.bytes(), err)
				best = r
			}
		}
		return best, errors.Join(failed, p.err)
	}
	return nil, p.err
}

// wholeCases cannot be halved: their sizes belong together, or they show what few inputs do.
var wholeCases = []string{"look/sizes", "look/fewer splats than there is room for",
	"project_bwd_adam_mixed/finite stays finite", "rasterize_bwd/above the ceiling of alpha",
	"rasterize_bwd/splats that are passed over have no gradient"}

// attempt runs the case with inputs that are halved some times, and returns the run that failed. What cannot be halved,
// because the case relies on its size, does not fail.
func (c Case) attempt(d *vk.Device, halvings int) (r *Repro, err error) {
	var runs recording
	if halvings > 0 && slices.Contains(wholeCases, c.Kernel+"/"+c.Name) {
		return nil, nil
	}
	defer func() {
		if x := recover(); x != nil {
			if halvings == 0 {
				panic(x)
			}
			r, err = nil, nil
		}
	}()
	if err = c.run(d, halvings, &runs); err == nil {
		return nil, nil
	}
	if r = runs.failed(err); r != nil {
		r.Case, r.Error, r.Halvings = c.Kernel+"/"+c.Name, err.Error(), halvings
		r.lost = errors.Is(err, vk.ErrDeviceLost)
		r.Device, r.Driver = d.Info().Name, d.Info().Driver
	}
	return r, err
}

// alike reports whether two runs of a case fail in the same way: the same binding is wrong, or the device is lost.
func (r *Repro) alike(o *Repro) bool {
	if r.Wrong == nil || o.Wrong == nil {
		return (r.Wrong == nil) == (o.Wrong == nil) && r.lost == o.lost
	}
	return r.Buffers[r.Wrong.Buffer].Name == o.Buffers[o.Wrong.Buffer].Name
}
