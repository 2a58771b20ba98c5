package pipeline

import (
	"vksplat/pipeline/checkpoint"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// histories hold the errors of pictures, of the device's own views: they decide which pixels count.
type histories struct {
	dev   *vk.Device
	words vk.Slice[uint32] // [HISTORY_WORDS]
}

// state returns the history as part of a checkpoint. A run may be resumed on another number of devices.
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
		return x.dev.RunOnce(r, "clear history")
	})
}
