package check

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"vksplat/internal/fault"
	"vksplat/vk"
)

// ErrKernels is in the chain of Doctor's error when a kernel computes something wrong.
var ErrKernels = errors.New("kernels fail")

// Verdict is the result of Doctor on a device.
type Verdict struct {
	Name, Driver   string // "" where no device could be opened
	CPU            bool   // it is software Vulkan
	Kernels, Right int    // that were run, and that computed what their twins did
}

// Doctor writes to w what this machine's Vulkan is like (loader, drivers, each device with its features, limits and
// memory, and what it lacks), then runs every kernel's cases on one device (device is "auto", an index or a UUID) and
// writes pass or FAIL for each kernel. The error names the kernels that failed, or says why there is no device to run
// on.
func Doctor(w io.Writer, device string) (v Verdict, err error) {
	p := &printer{w: w}
	in, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		p.f("loader   FAIL: %v\n", err)
		return v, errors.Join(err, p.err)
	}
	p.f("loader   found, by way of %s\n", vk.BackEnd)
	for _, d := range in.Devices() {
		p.device(&d)
	}
	if device == "" {
		device = "auto"
	}
	err = examine(p, in, device, &v)
	for _, m := range in.Messages() {
		p.f("validation: %s\n", m)
	}
	return v, errors.Join(err, p.err, in.Close())
}

// printer keeps the first error of writing.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) f(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format, args...); err != nil && p.err == nil {
		p.err = fmt.Errorf("write report: %w", err)
	}
}

func (p *printer) device(d *vk.DeviceInfo) {
	p.f("\ndevice %d %s\n", d.Index, d.Name)
	p.f("  type     %v\n  driver   %s\n  Vulkan   %v\n  UUID     %s\n", d.Type, d.Driver, d.API, d.UUID)
	for i, h := range d.Heaps {
		where := "host"
		if h.DeviceLocal {
			where = "device"
		}
		p.f("  memory   heap %d, %s: %s", i, where, mebibytes(h.Size))
		if h.Budget > 0 {
			p.f(", %s of %s in use by this process", mebibytes(h.Usage), mebibytes(h.Budget))
		}
		p.f("\n")
	}
	p.f("  ceiling  %s unless "+fault.Setting("max-vram")+" says otherwise\n", mebibytes(d.DefaultBudget()))
	have, lack := features(d.Features)
	p.f("  has      %s\n", strings.Join(have, " "))
	if len(lack) > 0 {
		p.f("  has not  %s\n", strings.Join(lack, " "))
	}
	for _, l := range fields(d.Limits) {
		p.f("  limit    %s %v\n", l.name, l.value)
	}
	if len(d.Missing) > 0 {
		p.f("  FAIL     cannot be used: it lacks %s\n", strings.Join(d.Missing, ", "))
	}
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// field is a member of Limits or Features by its Vulkan name.
type field struct {
	name  string
	value any
}

func fields(s any) (list []field) {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		list = append(list, field{v.Type().Field(i).Tag.Get("json"), v.Field(i).Interface()})
	}
	return list
}

func features(f vk.Features) (have, lack []string) {
	for _, x := range fields(f) {
		if x.value == true {
			have = append(have, x.name)
		} else {
			lack = append(lack, x.name)
		}
	}
	return have, lack
}

// examine runs all cases on the chosen device.
func examine(p *printer, in *vk.Instance, device string, v *Verdict) error {
	info, note, err := in.Select(device)
	if err != nil {
		return err
	}
	d, err := in.NewDevice(info, vk.DeviceOptions{Budget: info.DefaultBudget()})
	if err != nil {
		return err
	}
	p.f("\nkernels on device %d, %s\n", info.Index, info.Name)
	if note != "" {
		p.f("  note: %s\n", note)
		if note == vk.NoGPU(info.Name) {
			p.f("  for a GPU: %s\n", vk.DriverHint())
		}
	}
	v.Name, v.Driver, v.CPU = info.Name, info.Driver, info.Type == vk.CPU
	var failed []string
	start, table := time.Now(), Cases()
	for _, k := range kernels() {
		v.Kernels++
		if p.kernel(d, k.Name, table) {
			v.Right++
		} else {
			failed = append(failed, k.Name)
		}
		if d.Lost() {
			return errors.Join(fmt.Errorf("run kernels: %w in %s", vk.ErrDeviceLost, k.Name), d.Close())
		}
	}
	p.f("%d kernels, %d failed, %.1f s\n", v.Kernels, len(failed), time.Since(start).Seconds())
	if len(failed) > 0 {
		err = fmt.Errorf("run kernels: %w on %s: %s", ErrKernels, info.Name, strings.Join(failed, ", "))
	}
	return errors.Join(err, d.Close())
}

// kernel runs the cases of one kernel and reports whether all passed.
func (p *printer) kernel(d *vk.Device, name string, table []Case) bool {
	start, ran, skipped := time.Now(), 0, 0
	var errs []error
	for _, c := range table {
		if c.Kernel != name || d.Lost() {
			continue
		}
		if !c.Fits(d) {
			skipped++
			continue
		}
		ran++
		if err := c.Run(d); err != nil {
			errs = append(errs, err)
		}
	}
	verdict := "pass"
	if len(errs) > 0 || ran == 0 {
		verdict = "FAIL"
	}
	p.f("  %s %-18s %2d cases %6.0f ms", verdict, name, ran, float64(time.Since(start).Microseconds())/1000)
	if skipped > 0 {
		p.f(", %d left out: they bind more than the device can", skipped)
	}
	p.f("\n")
	for _, err := range errs {
		p.f("       %v\n", err)
	}
	return verdict == "pass"
}
