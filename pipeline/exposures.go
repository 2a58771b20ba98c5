package pipeline

import (
	"errors"
	"fmt"

	"vksplat/shaders/layout"
	"vksplat/vk"
)

// exposures are the colour maps of the training photos with their optimiser's state, on the device: a part of what training is made of, as the model is.
type exposures struct {
	dev   *vk.Device
	table vk.Slice[layout.Exposure] // [n_views]
}

// exposureBytes is the size of a row of the table.
const exposureBytes = 38 * 4

// bytes returns the size of the table; x may be nil.
func (x *exposures) bytes() int64 {
	if x == nil {
		return 0
	}
	return x.table.Size()
}

// newExposures makes an identity for each of n photos.
func newExposures(dev *vk.Device, n int) (*exposures, error) {
	x := &exposures{dev: dev}
	start := make([]layout.Exposure, n)
	for i := range start {
		for k := 0; k < len(start[i].Affine); k += 5 {
			start[i].Affine[k] = 1
		}
	}
	var err error
	if x.table, err = vk.Make[layout.Exposure](dev, vk.DeviceLocal, n, "exposures"); err != nil {
		return nil, err
	}
	if err := x.upload(start); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

// exposuresTensor is the table's name in a checkpoint.
const exposuresTensor = "exposures"

// state returns the table as part of a checkpoint: [n_views][38], the map, its moments and its bias corrections.
func (x *exposures) state() extraState {
	flat := vk.Cast[float32](x.table.View)
	return extraState{exposuresTensor, []int{x.table.N(), flat.N() / x.table.N()}, flat}
}

// upload replaces the whole table. Nothing may be in flight.
func (x *exposures) upload(table []layout.Exposure) (err error) {
	if len(table) != x.table.N() {
		return fmt.Errorf("pipeline: load exposures: %d colour maps for %d photos", len(table), x.table.N())
	}
	staging, err := vk.Make[layout.Exposure](x.dev, vk.Upload, x.table.N(), "exposures staging")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.dev.Free(staging.View)) }()
	copy(vk.Host(staging), table)
	r := vk.NewRecorder(x.dev)
	r.Copy(x.table.View, staging.View)
	return runOnce(x.dev, r, "load exposures")
}

func (x *exposures) close() error { return x.dev.Free(x.table.View) }
