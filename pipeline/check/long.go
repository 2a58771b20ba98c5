package check

import (
	"vksplat/shaders/layout"
)

// longCases are sizes beyond what a step usually needs, and the same cases with other numbers.
func longCases() []Case {
	const many = 3<<20 + 5
	big := func(kernel, name string, run func(t *trial) error) Case {
		c := newCase(kernel, name, run)
		c.Bytes = 4*many + guardBytes
		return c
	}
	return []Case{
		big("scan_apply", "long: millions", func(t *trial) error { return checkScan(t, t.uints(many, 1000)) }),
		big("sort_scatter", "long: millions of keys",
			func(t *trial) error { return checkSort(t, sortShapes(t.d)[0].radixSort, t.keys(many, 18), 18) }),
		big("sort_scatter", "long: millions of depths",
			func(t *trial) error { return checkDepthSort(t, sortShapes(t.d)[0].radixSort, t.depthKeys(many, 0.2)) }),
		big("sort_sweep", "long: millions of keys", func(t *trial) error {
			return each(oneBlock(t.d, []int{2000, many}, layout.SortBlock), func(n int) error {
				return first(checkSweep(t, sweepShapes(t.d)[0], t.keys(n, 18), 18),
					checkDepthSort(t, sweepShapes(t.d)[0].sorter(), t.depthKeys(n, 0.2)))
			})
		}),
		newCase("sort_scatter", "long: sizes around powers of two, all shapes", func(t *trial) error {
			for n := 1; n <= 1<<16; n *= 2 {
				if err := first(wholeSorts([]int{n - 1, n, n + 1}, []int{1 + t.IntN(32)})(t)); err != nil {
					return err
				}
			}
			return nil
		}),
		newCase("refine_place", "long: thousands of splats, other mixes", func(t *trial) error {
			for range 200 {
				m := mix{keep: 1 + t.IntN(5), duplicate: t.IntN(5), split: t.IntN(5), prune: t.IntN(5)}
				n := t.IntN(900)
				if err := checkRefine(t, t.refinable(n, m),
					refinement{ceiling: t.IntN(2*n + 1), chunks: 15}); err != nil {
					return err
				}
			}
			return nil
		}),
		newCase("emit_isects", "long: other ellipses", func(t *trial) error {
			for range 50 {
				w, h := 1+t.IntN(500), 1+t.IntN(400)
				if err := checkTiles(t, t.ellipses(300, w, h), t.camera(w, h), 1, 1+t.IntN(10)); err != nil {
					return err
				}
			}
			return nil
		}),
		newCase("rasterize_bwd", "long: other pictures", func(t *trial) error {
			for range 20 {
				w, h := 1+t.IntN(100), 1+t.IntN(80)
				if err := checkRasterBwd(t, t.crowd(t.IntN(4*layout.MostBucket), w, h, t.Float64()),
					t.camera(w, h)); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}
