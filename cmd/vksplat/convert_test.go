package main

import (
	"fmt"
	"slices"
	"testing"

	"vksplat/farm/spec"
	"vksplat/scene/splatfile"
)

// TestFarmFormats wants convert tasks of the farm to offer the formats that can be written, and no others, and the test
// of scores to have all of these.
func TestFarmFormats(t *testing.T) {
	for _, f := range splatfile.Formats() {
		doc := fmt.Sprintf("version = 1\nname = \"x\"\n[[task]]\nkind = \"convert\"\nmodel = \"m\"\nto = %q\n", f.Name)
		if _, err := spec.Parse("job.toml", []byte(doc)); (err == nil) != (f.Write != nil) {
			t.Errorf("%s can be written: %t; farm/spec/kind_convert.go says %v", f.Name, f.Write != nil, err)
		}
		judged := slices.ContainsFunc(f.Extensions, func(x string) bool { _, known := formatBounds[x]; return known })
		if judged != (f.Write != nil) {
			t.Errorf("%s can be written: %t; formatBounds has it: %t", f.Name, f.Write != nil, judged)
		}
	}
}
