package pipeline

import (
	"errors"

	"vksplat/pipeline/checkpoint"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// histories are how far pictures were from their photos, of each device's own views: what decides which pixels count.
// Those of a team lie in host memory that all devices reach, so that the first one's checkpoint has them all; each uses
// its own row alone.
type histories struct {
	dev    *vk.Device
	table  vk.Slice[layout.ErrorHistory] // [devices]
	common *vk.Shared                    // that the table lies in; nil with one device
}

// historyBytes is the size of a row of the table.
const historyBytes = (layout.ErrorBins + 1) * 4

// bytes returns the size of the table; x may be nil.
func (x *histories) bytes() int64 {
	if x == nil {
		return 0
	}
	return x.table.Size()
}

// state returns the table as part of a checkpoint. A run may go on with another number of devices.
func (x *histories) state() checkpoint.Extra {
	flat := vk.Cast[float32](x.table.View)
	return checkpoint.Extra{Name: checkpoint.HistoriesTensor, Data: flat,
		Shape: []int{x.table.N(), flat.N() / x.table.N()}, AnyRows: true}
}

// close frees the table, but for what is common to several devices.
func (x *histories) close() error {
	if x.common != nil {
		return nil
	}
	return x.dev.Free(x.table.View)
}

// addHistories makes the table, empty. It is state beside the splats.
func (g *group) addHistories() (extra checkpoint.Extra, err error) {
	var devices []*vk.Device
	for _, m := range g.members {
		devices = append(devices, m.e.dev)
	}
	first := g.members[0].e
	if len(devices) == 1 {
		x := &histories{dev: first.dev}
		x.table, err = vk.Make[layout.ErrorHistory](first.dev, vk.DeviceLocal, 1, "histories of errors")
		if err != nil {
			return extra, err
		}
		first.histories = x
		r := vk.NewRecorder(first.dev)
		r.Fill(x.table.View, 0)
		return x.state(), runOnce(first.dev, r, "clear histories")
	}
	if g.errors, err = vk.NewShared(devices, int64(len(devices))*historyBytes, "histories of errors"); err != nil {
		return extra, err
	}
	for _, m := range g.members {
		m.e.histories = &histories{dev: m.e.dev, table: vk.Cast[layout.ErrorHistory](g.errors.View(m.e.dev)),
			common: g.errors}
		clear(vk.Host(m.e.histories.table))
	}
	return first.histories.state(), nil
}

// carryTables makes all devices see what the first has beside the splats, where they do not anyway. Nothing may be in
// flight.
func (g *group) carryTables() (err error) {
	for _, s := range []*vk.Shared{g.looks, g.errors} {
		for _, m := range g.members {
			if s != nil {
				err = errors.Join(err, s.Carry(g.members[0].e.dev, m.e.dev, 0, s.View(m.e.dev).Size()))
			}
		}
	}
	return err
}

// besides is the size of what training has on the device beside the splats.
func (e *engine) besides() int64 { return e.appearances.bytes() + e.histories.bytes() }
