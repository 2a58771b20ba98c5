package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/train"
	"vksplat/pipeline"
	"vksplat/scene"
)

func TestAdvice(t *testing.T) {
	capture := &scene.Capture{Cameras: []scene.Camera{{Width: 800}, {Width: 1200}}}
	tests := []struct {
		args      string
		downscale captured.DownscaleFlag
		scaler    float64
		rate      float64
		small     bool
		want      string
	}{
		{"train s -m out", 0, 1, 1, false, "vksplat train s -m out --downscale 2 --steps-scaler 0.1"},
		{"train s -m out -r 2 --iterations 30000", 2, 1, 5, false,
			"vksplat train s -m out --iterations 30000 --downscale 4 --steps-scaler 0.5"},
		{"train s -r4 --out x", 4, 1, 8, false, "vksplat train s --out x --downscale 8"},
		{"train s --data_factor=2 --steps-scaler 0.5 -m o", 2, 0.5, 1, true,
			"vksplat train s --data_factor=2 -m o --steps-scaler 0.025"},
		{"train -- s", 8, 1, 0.001, false, "vksplat train --steps-scaler 0.01 -- s"},
	}
	for _, tt := range tests {
		o := trainingFor(cli.New(strings.Fields(tt.args), nil, nil))
		o.Load.Downscale, o.StepsScaler = tt.downscale, tt.scaler
		r := &train.Run{Options: o, Capture: capture}
		if tt.small {
			r.Capture = &scene.Capture{Cameras: capture.Cameras[:1]}
		}
		if got := r.Advice(tt.rate); got != tt.want {
			t.Errorf("%s at %g steps/s:\n%s\nwant\n%s", tt.args, tt.rate, got, tt.want)
		}
	}
}

// TestWatch ends a run after a round of photos without a splat, however the round began, and only warns of a model that
// was lost later.
func TestWatch(t *testing.T) {
	const seen = 100 // added to the view of a step that shows splats
	for _, test := range []struct {
		name          string
		from, total   int
		views         []int
		blind, warned bool
	}{
		{"a round", 0, 30, []int{2, 0, 1}, true, false},
		{"not yet", 0, 30, []int{2, 0, 2}, false, false},
		{"from the middle of a round", 7, 30, []int{1, 1, 2, 0}, true, false},
		{"a photo that cannot be decoded", 0, 30, []int{0, 1, 0, 1, 0, 1}, true, false},
		{"one photo shows a splat", 0, 30, []int{0, 1, 2 + seen, 0, 1, 2}, false, false},
		{"lost later", 0, 30, []int{0 + seen, 1, 2, 0, 1, 2, 0}, false, true},
		{"the last step of a resumed run", 29, 30, []int{1}, false, true},
	} {
		var said bytes.Buffer
		r := &train.Run{Options: &train.Options{Scene: "garden"}, Console: cli.New(nil, io.Discard, &said),
			Train: []int{0, 1, 2}}
		r.Config.Iterations = test.total
		rec := &train.Record{Run: r, From: test.from, Visited: map[int]bool{}}
		for i, view := range test.views {
			if rec.Blind != nil {
				t.Errorf("%s: ended after step %d", test.name, i)
			}
			rec.Watch(pipeline.Progress{Step: test.from + i + 1, View: view % seen, Visible: view / seen})
		}
		if (rec.Blind != nil) != test.blind || strings.Contains(said.String(), "nothing is learnt") != test.warned {
			t.Errorf("%s: error %v, said %q", test.name, rec.Blind, said.String())
		}
		if test.blind && (fault.ExitCode(rec.Blind) != fault.ExitData || fault.Hint(rec.Blind) == "") {
			t.Errorf("%s: exit code %d, hint %q", test.name, fault.ExitCode(rec.Blind), fault.Hint(rec.Blind))
		}
	}
}
