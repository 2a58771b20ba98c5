package pipeline

import (
	"vksplat/pipeline/checkpoint"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// histories are how far pictures were from their photos, of the device's own views: what decides which pixels count.
type histories struct {
	dev   *vk.Device
	words vk.Slice[uint32] // [HISTORY_WORDS]
}

// bytes returns the size of the history; x may be nil.
func (x *histories) bytes() int64 {
	if x == nil {
		return 0
	}
	return x.words.Size()
}

// state returns the history as part of a checkpoint. A run may go on with another number of devices.
func (x *histories) state() checkpoint.Extra {
	return checkpoint.Extra{Name: checkpoint.HistoriesTensor, Data: vk.Cast[float32](x.words.View),
		Shape: []int{1, x.words.N()}, AnyRows: true}
}

func (x *histories) close() error { return x.dev.Free(x.words.View) }

// addHistories makes each device's history, empty.
func (s *shards) addHistories() error {
	return s.each(func(m *shard) (err error) {
		x := &histories{dev: m.e.setup.dev}
		if x.words, err = vk.Make[uint32](x.dev, vk.DeviceLocal, layout.HistoryWords, "history of errors"); err != nil {
			return err
		}
		m.e.setup.histories = x
		r := vk.NewRecorder(x.dev)
		r.Fill(x.words.View, 0)
		return runOnce(x.dev, r, "clear history")
	})
}

// besides is the size of what training has on the device beside the splats.
func (s *setup) besides() int64 {
	return s.appearances.bytes() + s.histories.bytes() + s.poses.bytes()
}
