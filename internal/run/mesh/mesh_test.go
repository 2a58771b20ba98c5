package mesh

import (
	"testing"

	"vksplat/scene"
)

// TestWithoutSky leaves out a far shell that is nearly half of the splats, and nothing else.
func TestWithoutSky(t *testing.T) {
	s := scene.NewSplats(100, 0)
	for i := range s.N {
		s.Means[3*i+i%3] = float32(1 + i)
		if i >= 55 {
			s.Means[3*i+i%3] = 5000
		}
	}
	near := withoutSky(s)
	if near.N != 55 {
		t.Fatalf("%d splats are left", near.N)
	}
	for i := range near.N {
		if near.Means[3*i+i%3] != float32(1+i) {
			t.Fatalf("splat %d is at %v", i, near.Means[3*i:3*i+3])
		}
	}
}

// TestManyOfSky leaves out a far shell that is more than half of the splats, and nothing where all is far away.
func TestManyOfSky(t *testing.T) {
	for _, c := range []struct{ near, shell, left int }{{40, 60, 40}, {0, 100, 100}, {10, 90, 100}} {
		s := scene.NewSplats(100, 0)
		for i := range s.N {
			if s.Means[3*i+i%3] = 200; i < c.near {
				s.Means[3*i+i%3] = float32(1 + i%7)
			}
		}
		if n := withoutSky(s).N; n != c.left {
			t.Errorf("%d near, %d of a shell: %d are left, want %d", c.near, c.shell, n, c.left)
		}
	}
}
