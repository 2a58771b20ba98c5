package vksplat

import (
	"context"
	"errors"
	"image"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/models"
	"vksplat/internal/run/remedy"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// DeviceOptions choose a device and limit the memory that is used.
type DeviceOptions struct {
	// Select is the index, UUID or PCI address of one of Devices. "" takes a GPU if there is one, else software Vulkan.
	Select string
	// MaxVRAM and MaxRAM are hard ceilings of device and host memory: bytes, as in "6G" or "512MiB", or a share, as in
	// "50%". "" means 80% of the device, and half of the RAM that is available.
	MaxVRAM, MaxRAM string
}

// DeviceInfo describes a device of this machine.
type DeviceInfo struct {
	Index  int
	Name   string
	UUID   string
	PCI    string // address; "" where the driver does not tell
	Memory int64  // bytes
	Usable bool   // it has what this package needs
}

// Devices lists the devices of this machine.
func Devices() ([]DeviceInfo, error) {
	list, err := pipeline.ListDevices()
	if err != nil {
		return nil, classified(err)
	}
	infos := make([]DeviceInfo, len(list))
	for i, d := range list {
		infos[i] = DeviceInfo{Index: d.Index, Name: d.Name, UUID: d.UUID, PCI: d.PCI, Memory: d.MemoryBytes,
			Usable: d.Usable}
	}
	return infos, nil
}

// Device is a GPU, or a processor with software Vulkan, that trains and draws. It does one thing at a time: a call
// waits for those that other goroutines made before, or until its context is done. Callbacks of a training, as
// TrainOptions.Progress, must not call the training's device: they would wait for the training, and it for them.
type Device struct {
	gpu     *pipeline.Device
	options pipeline.DeviceOptions

	// turn holds a value while a call uses the device and the fields below.
	turn     chan struct{}
	closed   bool
	drawing  context.Context // of the present call of Render
	drawn    *Model          // that renderer draws
	renderer *pipeline.Renderer
}

// OpenDevice opens a device. It must be closed.
//
// Work keeps to MaxRAM by what it plans; Go's garbage comes on top. A program that must not exceed it also sets the
// memory limit of the Go runtime, which is the whole process's: this package does not.
func OpenDevice(o DeviceOptions) (*Device, error) {
	options := pipeline.DeviceOptions{Select: o.Select, MaxVRAM: o.MaxVRAM, MaxRAM: o.MaxRAM}
	gpu, err := pipeline.OpenDevice(options)
	if err != nil {
		return nil, classified(err)
	}
	return &Device{gpu: gpu, options: options, turn: make(chan struct{}, 1)}, nil
}

// Name is the driver's name of the device.
func (d *Device) Name() string { return d.gpu.Name() }

// Close waits for the calls that were made before and gives the device back, after which only Name and Close may be
// called.
func (d *Device) Close() error {
	if err := d.begin(context.Background()); err != nil {
		return err
	}
	defer d.end()
	if d.closed {
		return nil
	}
	d.closed = true
	return classified(errors.Join(d.putAway(), models.CloseDevice(d.gpu)))
}

// check refuses a device that OpenDevice has not opened.
func (d *Device) check() error {
	if d == nil || d.gpu == nil {
		return fault.Usagef("open one with OpenDevice", "there is no device")
	}
	return nil
}

// begin waits for the calls that were made before. Unless it fails, end must follow.
func (d *Device) begin(ctx context.Context) error {
	if err := d.check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case d.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end lets the next call in.
func (d *Device) end() { <-d.turn }

// beginOpen is begin of a call that needs the device open.
func (d *Device) beginOpen(ctx context.Context) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	if d.closed {
		d.end()
		return fault.Usagef("open it again with OpenDevice", "the device is closed")
	}
	return nil
}

// putAway frees what the model that was drawn last takes on the device.
func (d *Device) putAway() (err error) {
	if d.renderer != nil {
		err = d.renderer.Close()
	}
	d.renderer, d.drawn = nil, nil
	return err
}

// use runs work that needs all of the device.
func (d *Device) use(ctx context.Context, work func() error) error {
	if err := d.beginOpen(ctx); err != nil {
		return err
	}
	defer d.end()
	if err := d.putAway(); err != nil {
		return err
	}
	return work()
}

// Render draws the model as the camera sees it, as the command vksplat render does: on the background and with the near
// plane that it was trained with. The first picture of a model takes it to the device; those that follow are fast.
func (d *Device) Render(ctx context.Context, m *Model, c Camera) (image.Image, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	if err := d.beginOpen(ctx); err != nil {
		return nil, err
	}
	defer d.end()
	d.drawing = ctx
	view := &scene.Capture{Cameras: []scene.Camera{c.scene()}}
	view.NormaliseTo(m.frame, 1)
	if d.drawn != m {
		if err := d.take(m, view.Cameras); err != nil {
			return nil, classified(remedy.Memory(err))
		}
	}
	rgb, err := d.renderer.RenderInto(nil, view.Cameras[0])
	if err != nil {
		return nil, ended(ctx, remedy.Memory(errors.Join(err, d.putAway())))
	}
	made := photo.FromFloats(rgb, c.Width, c.Height)
	return &image.NRGBA{Pix: made.Pix, Stride: 4 * c.Width, Rect: image.Rect(0, 0, c.Width, c.Height)}, nil
}

// take puts a model on the device.
func (d *Device) take(m *Model, views []scene.Camera) error {
	if err := d.putAway(); err != nil {
		return err
	}
	config := m.look
	config.Stop = func() error { return d.drawing.Err() }
	renderer, err := pipeline.NewRenderer(d.gpu, m.splats.FromCapture(m.frame, m.origin), views, config)
	if err != nil {
		return err
	}
	d.renderer, d.drawn = renderer, m
	return nil
}

// console receives the messages of a call.
func console(ctx context.Context, warn func(text string)) *cli.Console {
	return cli.Within(ctx, func(n cli.Notice) {
		if warn != nil {
			warn(n.Text)
		}
	})
}
