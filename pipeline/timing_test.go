package pipeline

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"vksplat/scene"
)

// TestPassTimes prints where a step's device time goes for the capture that VKSPLAT_TIMES names: a tool for developers, not a proof of speed.
func TestPassTimes(t *testing.T) {
	root := os.Getenv("VKSPLAT_TIMES")
	if root == "" {
		t.Skip("no device times asked for: VKSPLAT_TIMES=CAPTURE prints them, VKSPLAT_TIMES_STEPS sets the steps")
	}
	c, err := scene.Load(root, scene.LoadOptions{Model: scene.AnyModel})
	if err != nil {
		t.Fatal(err)
	}
	c.Normalise()
	images := decodeAll(t, c.Cameras)
	views := make([]TrainView, len(images))
	for i := range views {
		views[i] = TrainView{c.Cameras[i], images[i]}
	}
	cfg := DefaultConfig()
	cfg.Iterations = 20
	if n, err := strconv.Atoi(os.Getenv("VKSPLAT_TIMES_STEPS")); err == nil {
		cfg.Iterations = n
	}
	tr, err := trainOn(testDevice(t), views, scene.Initialise(c.Points, 42, 3, cfg.InitOpacity, cfg.InitScale), c.SceneScale, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	sums, names, n := map[string]int64{}, []string(nil), 0
	tail := max(0, cfg.Iterations-200)
	err = tr.Run(context.Background(), func(p Progress) {
		if p.Step <= tail {
			return
		}
		for _, f := range tr.e.frames {
			if times := f.programs[unitStep].Timings(nil); len(times) > 0 {
				for _, x := range times {
					if sums[x.Name] == 0 {
						names = append(names, x.Name)
					}
					sums[x.Name] += x.Nanoseconds
				}
				n++
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	slices.SortStableFunc(names, func(a, b string) int { return int(sums[b] - sums[a]) })
	fmt.Printf("%d splats, %d visible, %d isects, %d measurements of the last steps of %d\n", tr.progress.Splats, tr.progress.Visible, tr.progress.Isects, n, cfg.Iterations)
	for _, name := range names {
		fmt.Printf("%-24s %9.4f ms\n", name, float64(sums[name])/1e6/float64(n))
		total += sums[name]
	}
	fmt.Printf("%-24s %9.4f ms; host %.4f ms a step\n", "sum", float64(total)/1e6/float64(n), tr.Seconds()*1e3/float64(cfg.Iterations))
}
