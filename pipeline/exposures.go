package pipeline

import (
	"errors"
	"fmt"

	"vksplat/pipeline/checkpoint"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// exposures are the colour maps of the training photos with their optimiser's state, on the device: a part of what
// training is made of, as the model is. Those of a team lie in host memory that all devices reach: a step changes a row
// or two, each is one photo's.
type exposures struct {
	dev    *vk.Device
	table  vk.Slice[layout.Exposure] // [n_views]
	common *vk.Shared                // that the table lies in; nil with one device
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
	var err error
	if x.table, err = vk.Make[layout.Exposure](dev, vk.DeviceLocal, n, "exposures"); err != nil {
		return nil, err
	}
	if err := x.upload(identities(n)); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

// identities are the maps of n photos before the first step.
func identities(n int) []layout.Exposure {
	start := make([]layout.Exposure, n)
	for i := range start {
		for k := 0; k < len(start[i].Affine); k += 5 {
			start[i].Affine[k] = 1
		}
	}
	return start
}

// state returns the table as part of a checkpoint: [n_views][38], the map, its moments and its bias corrections.
func (x *exposures) state() checkpoint.Extra {
	flat := vk.Cast[float32](x.table.View)
	return checkpoint.Extra{Name: checkpoint.ExposuresTensor, Data: flat,
		Shape: []int{x.table.N(), flat.N() / x.table.N()}}
}

// upload replaces the whole table. Nothing may be in flight.
func (x *exposures) upload(table []layout.Exposure) (err error) {
	if len(table) != x.table.N() {
		return fmt.Errorf("load exposures: %d colour maps for %d photos", len(table), x.table.N())
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

// close frees the table, but for what is common to several devices.
func (x *exposures) close() error {
	if x.common != nil {
		return nil
	}
	return x.dev.Free(x.table.View)
}

// addExposures makes the colour maps of n photos. They are state beside the splats.
func (g *group) addExposures(n int) (extra []checkpoint.Extra, err error) {
	first := g.members[0].e
	if len(g.members) == 1 {
		first.exposures, err = newExposures(first.dev, n)
	} else {
		err = g.addCommonExposures(n)
	}
	if err != nil {
		return nil, err
	}
	return []checkpoint.Extra{first.exposures.state()}, nil
}

// addCommonExposures makes those of a team, an identity for each photo.
func (g *group) addCommonExposures(n int) (err error) {
	var devices []*vk.Device
	for _, m := range g.members {
		devices = append(devices, m.e.dev)
	}
	if g.maps, err = vk.NewShared(devices, int64(n)*exposureBytes, "exposures"); err != nil {
		return err
	}
	for _, m := range g.members {
		x := &exposures{dev: m.e.dev, table: vk.Cast[layout.Exposure](g.maps.View(m.e.dev)), common: g.maps}
		copy(vk.Host(x.table), identities(x.table.N()))
		m.e.exposures = x
	}
	return nil
}

// carryExposures makes all devices see the colour maps as the first has them, where they do not anyway. Nothing may be
// in flight.
func (g *group) carryExposures(n int) (err error) {
	if g.maps == nil {
		return nil
	}
	for _, m := range g.members {
		err = errors.Join(err, g.maps.Carry(g.members[0].e.dev, m.e.dev, 0, int64(n)*exposureBytes))
	}
	return err
}

// notStepped is the learning rate of a colour map that another device steps: that of a photo which two devices have in
// one step, at the end of an epoch or in place of one that cannot be decoded.
const notStepped = -1

// exposureRows are the colour maps as the passes before the optimiser read them. A team's cross from host memory once a
// step, and not for each pixel.
func (v *view) exposureRows() vk.Slice[layout.Exposure] {
	if v.links == nil {
		return v.exposures.table
	}
	if v.shared.maps.IsZero() {
		scratch(v.r, &v.shared.maps, "exposures of the step", v.exposures.table.N())
		v.r.Copy(v.shared.maps.View, v.exposures.table.View)
	}
	return v.shared.maps
}
