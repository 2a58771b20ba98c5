package main

import (
	"strings"
	"testing"

	"vksplat/internal/run/train"
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
