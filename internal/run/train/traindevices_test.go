package train

import (
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/models"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline"
	"vksplat/pipeline/checkpoint"
	"vksplat/scene"
)

// TestNamesDevices wants every way of naming a device that some machine has, and no other word, to pass for a value of
// --devices.
func TestNamesDevices(t *testing.T) {
	for list, want := range map[string]bool{
		"all": true, "auto": true, "0": true, "0,1": true, "0, 12": true,
		"aaaa0000-1111-2222-3333-444455556666,1": true, "AAAA0000111122223333444455556666": true,
		"GPU-aaaa0000-1111-2222-3333-444455556666": true, "0000:65:00.0": true, "65:00.0,c1:00.0": true,
		"00000000:C1:00.0": true,
		"":                 false, "gpu": false, "0,": false, "all,0": false, "-1": false, "65:00": false,
		"65:00.9":  false,
		"GPU-aaaa": false, "123456789": false,
	} {
		if namesDevices(list) != want {
			t.Errorf("%q: %v", list, !want)
		}
	}
}

// TestDevicesFor asks how many devices runs of several sizes take on machines that have some of a kind.
func TestDevicesFor(t *testing.T) {
	runtest.NeedDevice(t)
	cams := []scene.Camera{{Name: "a", Width: 64, Height: 48}}
	for _, c := range []struct {
		name              string
		splats, max, ends int
		others            int
		team              int // devices that wrote the checkpoint; 0: there is none
		memory            string
		want              int
		why               string
	}{
		{name: "small", splats: 300, max: 400_000, others: 3, want: 1,
			why: "of 4: below 500000 splats one is about as fast"},
		{name: "no ceiling", splats: 300, others: 3, want: 1, why: "of 4"},
		{name: "large ceiling", splats: 300, max: 2_000_000, others: 3, want: 4, why: "2000000 splats, and from"},
		{name: "large end", splats: 300, ends: 3_000_000, max: 4_000_000, others: 1, want: 2, why: "3000000 splats"},
		{name: "large start", splats: 2_500_000, others: 1, want: 2, why: "2500000 splats"},
		{name: "alone", splats: 2_500_000, want: 1, why: "no other GPU is like it"},
		{name: "no room to grow", splats: 300, max: 450_000, others: 1, memory: "50MiB", want: 2,
			why: "one has too little memory"},
		{name: "no room", splats: 450_000, others: 1, memory: "50MiB", want: 2, why: "one has too little memory"},
		{name: "begun on two", splats: 300, max: 300, others: 3, team: 2, want: 2, why: "as in the run so far"},
		{name: "begun on one", splats: 2_500_000, others: 3, team: 1, want: 1, why: "as in the run so far"},
		{name: "begun on more", splats: 2_500_000, others: 1, team: 4, want: 2,
			why: "the run so far used 4, but only 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := NewOptions()
			o.Config.MaxSplats, o.Config.Splats, o.Device.MaxVRAM = c.max, c.ends, c.memory
			m := machine{Options: o}
			var from *checkpoint.File
			if c.team > 0 {
				from = &checkpoint.File{}
			}
			if c.team > 1 {
				from.Header.Team = make([]checkpoint.ShareRecord, c.team)
			}
			m.device = must.Get(pipeline.OpenDevice(o.Device))(t)
			defer models.CloseDevice(m.device)
			if n, why := m.devicesFor(cams, c.splats, c.others, pipeline.TrainerOptions{}, from); n != c.want ||
				!strings.Contains(why, c.why) {
				t.Errorf("%d devices (%s), want %d", n, why, c.want)
			}
		})
	}
}
