package main

import (
	"strings"
	"testing"

	"vksplat/internal/run/models"
	"vksplat/internal/run/train"
	"vksplat/pipeline"
	"vksplat/pipeline/checkpoint"
	"vksplat/scene"
)

// TestDevicesFor asks how many devices runs of several sizes take on machines that have some of a kind.
func TestDevicesFor(t *testing.T) {
	needDevice(t)
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
			why: "of 4: up to 500000 splats one is about as fast"},
		{name: "no ceiling", splats: 300, others: 3, want: 1, why: "of 4"},
		{name: "large ceiling", splats: 300, max: 2_000_000, others: 3, want: 4, why: "2000000 splats, and from"},
		{name: "large end", splats: 300, ends: 3_000_000, max: 4_000_000, others: 1, want: 2, why: "3000000 splats"},
		{name: "large start", splats: 2_500_000, others: 1, want: 2, why: "2500000 splats"},
		{name: "alone", splats: 2_500_000, want: 1, why: "no other GPU is like it"},
		{name: "no room to grow", splats: 300, max: 450_000, others: 1, memory: "50MiB", want: 2,
			why: "one has too little memory"},
		{name: "no room", splats: 450_000, others: 1, memory: "50MiB", want: 2, why: "one has too little memory"},
		{name: "begun on two", splats: 300, max: 300, others: 3, team: 2, want: 2, why: "as the steps so far"},
		{name: "begun on one", splats: 2_500_000, others: 3, team: 1, want: 1, why: "as the steps so far"},
		{name: "begun on more", splats: 2_500_000, others: 1, team: 4, want: 2,
			why: "the steps so far were of 4, and no more than 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := train.NewOptions()
			o.Config.MaxSplats, o.Config.Splats, o.Device.MaxVRAM = c.max, c.ends, c.memory
			r := &train.Run{Options: o}
			r.Saver = train.NewSaver(r)
			if c.team > 0 {
				r.Saver.From = &checkpoint.File{}
			}
			if c.team > 1 {
				r.Saver.From.Header.Team = make([]checkpoint.ShareRecord, c.team)
			}
			var err error
			if r.Device, err = pipeline.OpenDevice(o.Device); err != nil {
				t.Fatal(err)
			}
			defer models.CloseDevice(r.Device)
			if n, why := r.DevicesFor(cams, c.splats, c.others, pipeline.TrainerOptions{}); n != c.want ||
				!strings.Contains(why, c.why) {
				t.Errorf("%d devices (%s), want %d", n, why, c.want)
			}
		})
	}
}
