package main

import "testing"

// TestFarmWords wants commands that people are told to name the farm that they are about.
func TestFarmWords(t *testing.T) {
	for want, f := range map[string]farmFlags{
		"":             {},
		" --pass anna": {pass: "anna"},
		" --temporal hub:7233 --namespace splats --owner anna": {temporal: "hub:7233", namespace: "splats",
			owner: "anna"},
	} {
		if got := f.words(); got != want {
			t.Errorf("%+v: %q", f, got)
		}
	}
}
