package reconstruct

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/capture/capturetest"
	"vksplat/pipeline"
	"vksplat/pipeline/features"
	"vksplat/scene/pairs"
)

func TestTry(t *testing.T) {
	dir := t.TempDir()
	n := 12
	must.Do(t, capturetest.Photos(dir, n, 200, 150))
	d := must.Get(pipeline.OpenDevice(pipeline.DeviceOptions{}))(t)
	defer d.Close()
	var photos []Photo
	for i := range n {
		name := fmt.Sprintf("%03d.png", i)
		photos = append(photos, Photo{Name: name, Path: filepath.Join(dir, name)})
	}
	t0 := time.Now()
	found := must.Get(Find(t.Context(), d, photos, features.Default(), func(int) {}))(t)
	t1 := time.Now()
	p := must.Get(Match(t.Context(), d, photos, found, pairs.Defaults, func(int, int) {}))(t)
	t2 := time.Now()
	m, missing, err := Map(t.Context(), photos, found, p, func(int, int) {})
	for _, f := range found {
		t.Log(len(f.Points))
	}
	t.Log(t1.Sub(t0), t2.Sub(t1), time.Since(t2), len(p), missing, err)
	if err == nil {
		t.Log(m.Cameras, len(m.Images), len(m.Points))
	}
}
