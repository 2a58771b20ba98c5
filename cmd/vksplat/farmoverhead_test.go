package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	must "vksplat/internal/musttest"
)

// BenchmarkFarmOverhead times a training by farm run beside plain train, in turn. VKSPLAT_TEST_STEPS makes it longer,
// as for a GPU:
//
//	VKSPLAT_TEST_STEPS=100000 go test ./cmd/vksplat -run '^$' -bench FarmOverhead -benchtime 3x
func BenchmarkFarmOverhead(b *testing.B) {
	needDevice(b)
	steps := "1500"
	if text := os.Getenv("VKSPLAT_TEST_STEPS"); text != "" {
		must.Get(strconv.Atoi(text))(b)
		steps = text
	}
	dir := b.TempDir()
	b.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	vksplat(b, "demo", "--capture-only", "-m", filepath.Join(dir, "capture"), "--images", "20", "--size", "160x120",
		"--points", "2000")
	document := filepath.Join(dir, "job.toml")
	must.Do(b, os.WriteFile(document,
		fmt.Appendf(nil, "version = 1\nname = \"cost\"\n[[task]]\nkind = \"train\"\nid = \"model\"\nsource = "+
			"\"capture\"\nset.iterations = %s\n", steps), 0o666))
	timed := func(args ...string) time.Duration {
		began := time.Now()
		vksplat(b, args...)
		return time.Since(began)
	}
	var plain, farm time.Duration
	for n := 0; b.Loop(); n++ {
		plain += timed("train", filepath.Join(dir, "capture"), "-m", filepath.Join(dir, fmt.Sprint("plain", n)),
			"--iterations", steps, "--progress", "none")
		farm += timed("farm", "run", document, "-o", filepath.Join(dir, fmt.Sprint("farm", n)), "--progress", "none")
	}
	b.ReportMetric(farm.Seconds()/plain.Seconds(), "farm/train")
}
