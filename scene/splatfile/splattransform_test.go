package splatfile

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"vksplat/scene"
)

// runSplatTransform runs an independent converter (https://github.com/playcanvas/splat-transform), which npm fetches once.
func runSplatTransform(args ...string) error {
	npx, err := exec.LookPath("npx")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, npx, append([]string{"--yes", "@playcanvas/splat-transform@3.7.0"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %.500s", err, out)
	}
	return nil
}

// TestSplatTransform wants an independent program to read what is written here as this program does.
func TestSplatTransform(t *testing.T) {
	if err := runSplatTransform("--version"); err != nil {
		t.Skipf("npx does not run @playcanvas/splat-transform: %v", err)
	}
	for _, c := range []struct {
		format *Format
		model  *scene.Splats
		equal  func(t *testing.T, got, want *scene.Splats)
	}{
		{compressedPLY, madeModel(600, 3, "spread"), func(t *testing.T, got, want *scene.Splats) {
			for i, x := range want.LogitOpacities {
				near(t, "logit", i, float64(got.LogitOpacities[i]), float64(x), 1e-6)
			}
			copy(got.LogitOpacities, want.LogitOpacities)
			sameModel(t, got, want)
		}},
		{compressedPLY, madeModel(257, 0, "huge"), func(t *testing.T, got, want *scene.Splats) { sameModel(t, got, want) }},
		{dotSplat, madeModel(300, 2, "spread"), func(t *testing.T, got, want *scene.Splats) {
			// It takes 255 parts for the range of rotations.
			checkBytesModel(t, got, want, 1.0/128)
		}},
	} {
		t.Run(c.format.Name, func(t *testing.T) {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "model"+c.format.Extensions[0]), filepath.Join(dir, "out.ply")
			if _, err := c.format.Write(in, Memory(c.model, scene.PLYMeta{Antialiased: true}), WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			want, _ := readModel(t, c.format, in)
			if err := runSplatTransform(in, out); err != nil {
				t.Fatal(err)
			}
			got, _, err := scene.ReadPLY(out)
			if err != nil {
				t.Fatal(err)
			}
			c.equal(t, got, want)
		})
	}
}
