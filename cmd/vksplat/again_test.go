package main

import (
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/train"
	"vksplat/scene"
)

func TestCommandAgain(t *testing.T) {
	resume, from := train.Change{Setting: "resume"}, train.Change{Setting: "resume", Value: "a b"}
	anew := train.Change{Setting: "resume", LeftOut: true}
	for _, c := range []struct {
		args   string
		change train.Change
		want   string
	}{
		{"train s -m out", resume, "train s -m out --resume"},
		{"train --resume s -m out", resume, "train s -m out --resume"},
		{"train s --resume=x -m out", from, "train s -m out '--resume=a b'"},
		{"train --resume -- s", resume, "train --resume -- s"},
		{"train s --resume -m out", anew, "train s -m out"},
		{"train s -m out -- --resume", anew, "train s -m out -- --resume"},
	} {
		if got := commandAgain(strings.Fields(c.args), []train.Change{c.change}); got != "vksplat "+c.want {
			t.Errorf("%s: %s, want vksplat %s", c.args, got, c.want)
		}
	}
}

// TestAdvice wants the command of a faster run.
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
		c := capture
		if tt.small {
			c = &scene.Capture{Cameras: capture.Cameras[:1]}
		}
		if got := o.Advice(c, tt.rate); got != tt.want {
			t.Errorf("%s at %g steps/s:\n%s\nwant\n%s", tt.args, tt.rate, got, tt.want)
		}
	}
}
