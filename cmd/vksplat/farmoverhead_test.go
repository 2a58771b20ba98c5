package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

// TestFarmOverhead times a training by farm run beside plain train: it may take 1.02 times as long, and a second more.
// VKSPLAT_TEST_STEPS makes it longer, as for a GPU:
//
//	VKSPLAT_LONG=1 VKSPLAT_TEST_STEPS=100000 go test -count=1 -v ./cmd/vksplat -run TestFarmOverhead
func TestFarmOverhead(t *testing.T) {
	if !filetest.Long() {
		t.Skip("VKSPLAT_LONG=1 measures what farm run adds to a training")
	}
	needDevice(t)
	steps := "1500"
	if text := os.Getenv("VKSPLAT_TEST_STEPS"); text != "" {
		must.Get(strconv.Atoi(text))(t)
		steps = text
	}
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	vksplat(t, "demo", "--capture-only", "-m", filepath.Join(dir, "capture"), "--images", "20", "--size", "160x120",
		"--points", "2000")
	document := filepath.Join(dir, "job.toml")
	must.Do(t, os.WriteFile(document,
		fmt.Appendf(nil, "version = 1\nname = \"cost\"\n[[task]]\nkind = \"train\"\nid = \"model\"\nsource = "+
			"\"capture\"\nset.iterations = %s\n", steps), 0o666))
	timed := func(args ...string) time.Duration {
		began := time.Now()
		vksplat(t, args...)
		return time.Since(began)
	}
	var plain, farm time.Duration // the best of some: other programs run, too
	for i := range 3 {
		n := strconv.Itoa(i)
		if took := timed("train", filepath.Join(dir, "capture"), "-m", filepath.Join(dir, "plain"+n), "--iterations",
			steps, "--progress", "none"); i == 0 || took < plain {
			plain = took
		}
		if took := timed("farm", "run", document, "-o", filepath.Join(dir, "farm"+n), "--progress", "none"); i == 0 ||
			took < farm {
			farm = took
		}
	}
	t.Logf("train %v, farm run %v", plain, farm)
	if most := plain*102/100 + time.Second; farm > most {
		t.Errorf("farm run may take %v", most)
	}
}
