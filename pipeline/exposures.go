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
	return x, x.upload(start)
}

// state returns the table as part of a checkpoint: [n_views][38], the map, its moments and its bias corrections.
func (x *exposures) state() extraState {
	flat := vk.Cast[float32](x.table.View)
	return extraState{"exposures", []int{x.table.N(), flat.N() / x.table.N()}, flat}
}

// upload replaces the whole table. Nothing may be in flight.
func (x *exposures) upload(table []layout.Exposure) error {
	if len(table) != x.table.N() {
		return fmt.Errorf("pipeline: load exposures: %d colour maps for %d photos", len(table), x.table.N())
	}
	return x.transfer(vk.Upload, func(staging vk.Slice[layout.Exposure], r *vk.Recorder) {
		copy(vk.Host(staging), table)
		r.Copy(x.table.View, staging.View)
	}, nil)
}

// download returns the whole table. Nothing may be in flight.
func (x *exposures) download() (table []layout.Exposure, err error) {
	err = x.transfer(vk.Readback, func(staging vk.Slice[layout.Exposure], r *vk.Recorder) {
		r.Copy(staging.View, x.table.View)
	}, func(host []layout.Exposure) {
		table = append(table, host...)
	})
	return table, err
}

// transfer runs what record lists, with staging memory of the table's size, and hands that to then, which may be nil.
func (x *exposures) transfer(kind vk.MemoryKind, record func(vk.Slice[layout.Exposure], *vk.Recorder), then func([]layout.Exposure)) (err error) {
	staging, err := vk.Make[layout.Exposure](x.dev, kind, x.table.N(), "exposures staging")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.dev.Free(staging.View)) }()
	r := vk.NewRecorder(x.dev)
	record(staging, r)
	if err := runOnce(x.dev, r, "transfer exposures"); err != nil {
		return err
	}
	if then != nil {
		then(vk.Host(staging))
	}
	return nil
}

func (x *exposures) close() error { return x.dev.Free(x.table.View) }

// Exposures returns the colour map learnt for each training photo, in the order of the views: row-major [3][4], c' = A[:, :3] c + A[:, 3] for a rendered
// colour c. nil where exposure is not learnt.
func (t *Trainer) Exposures() ([][12]float32, error) {
	if t.e.exposures == nil {
		return nil, nil
	}
	if _, err := t.drain(); err != nil {
		return nil, err
	}
	table, err := t.e.exposures.download()
	if err != nil {
		return nil, err
	}
	maps := make([][12]float32, len(table))
	for i := range table {
		maps[i] = table[i].Affine
	}
	return maps, nil
}
