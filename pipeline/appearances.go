package pipeline

import (
	"errors"
	"fmt"

	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// PhotoStart is the known exposure and camera of a photo, from which learning starts.
type PhotoStart struct {
	Exposure float64 // log2 of what its colours are multiplied by; only differences between photos matter
	Camera   int     // number of the camera, from 0: photos of one camera share their vignetting
}

// appearances are the learnt exposure, white balance and vignetting of the training photos, with the optimiser's state,
// on the device. A step changes one photo's row; a camera's vignetting is the sum over its photos. A team has its table
// in host memory that all devices reach, where no two write the same row.
type appearances struct {
	dev    *vk.Device
	table  vk.Slice[layout.Appearance] // [n_views]
	common *vk.Shared                  // memory of the table; nil with one device
}

// appearanceBytes is the size of a row of the table.
const appearanceBytes = (3*layout.AppearanceNumbers + 3) * 4

func newAppearances(dev *vk.Device, rows []layout.Appearance) (*appearances, error) {
	x := &appearances{dev: dev}
	var err error
	if x.table, err = vk.Make[layout.Appearance](dev, vk.DeviceLocal, len(rows), "appearances"); err != nil {
		return nil, err
	}
	if err := x.upload(rows); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func cameraCount(starts []PhotoStart) int {
	n := 1
	for _, s := range starts {
		n = max(n, s.Camera+1)
	}
	return n
}

// firstAppearances returns the rows of n photos before the first step. Without starts all are of one camera.
func firstAppearances(n int, starts []PhotoStart, cfg *recipe.Config) []layout.Appearance {
	rows := make([]layout.Appearance, n)
	for i, s := range starts {
		rows[i].Camera = float32(s.Camera)
		if cfg.Exposure {
			rows[i].Own[0] = float32(s.Exposure)
		}
	}
	return rows
}

// state returns the table as part of a checkpoint: [n_views][75], each row as layout.Appearance has it.
func (x *appearances) state() checkpoint.Extra {
	flat := vk.Cast[float32](x.table.View)
	return checkpoint.Extra{Name: checkpoint.AppearancesTensor, Data: flat,
		Shape: []int{x.table.N(), flat.N() / x.table.N()}}
}

// upload replaces the whole table. Nothing may be in flight.
func (x *appearances) upload(rows []layout.Appearance) error {
	if len(rows) != x.table.N() {
		return fmt.Errorf("load appearances: %d rows for %d photos", len(rows), x.table.N())
	}
	return writeTable(x.dev, x.table, rows)
}

// download returns the whole table. Nothing may be in flight.
func (x *appearances) download() ([]layout.Appearance, error) { return readTable(x.dev, x.table) }

// close frees the table, unless it is common to several devices.
func (x *appearances) close() error {
	if x.common != nil {
		return nil
	}
	return x.dev.Free(x.table.View)
}

// addAppearances makes the tables of all devices, which begin with rows.
func (s *shards) addAppearances(rows []layout.Appearance) (err error) {
	if len(s.list) == 1 {
		e := s.first.e.setup
		e.appearances, err = newAppearances(e.dev, rows)
		return err
	}
	s.appearances, err = vk.NewShared(s.devices(), int64(len(rows))*appearanceBytes, "appearances")
	if err != nil {
		return err
	}
	for _, m := range s.list {
		dev := m.e.setup.dev
		x := &appearances{dev: dev, table: vk.Cast[layout.Appearance](s.appearances.View(dev)), common: s.appearances}
		copy(vk.Host(x.table), rows)
		m.e.setup.appearances = x
	}
	return nil
}

// notStepped is the learning rate of a photo that another device steps: two devices may have the same photo in one
// step, at the end of an epoch or in place of one that cannot be decoded.
const notStepped = -1

// appearanceRows returns the table as find_appearance reads it. A team's is copied from host memory as a whole: rows
// are read one after the other.
func (v *view) appearanceRows() vk.Slice[layout.Appearance] {
	if v.s.links == nil {
		return v.s.appearances.table
	}
	rows := vk.ScratchOf[layout.Appearance](v.r, "appearances of the step", v.s.appearances.table.N())
	v.r.Copy(rows.View, v.s.appearances.table.View)
	return rows
}

// carryAppearances copies the first device's table to those of all. Nothing may be in flight.
func (s *shards) carryAppearances() (err error) {
	if s.appearances == nil {
		return nil
	}
	for _, m := range s.list {
		dev := m.e.setup.dev
		err = errors.Join(err, s.appearances.Carry(s.first.e.setup.dev, dev, 0, s.appearances.View(dev).Size()))
	}
	return err
}
