package check

import (
	"fmt"
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func carveCases() []Case {
	return []Case{
		newCase("carve", "sizes", func(t *trial) error {
			return each([]int{0, 1, 255, 256, 257, chunkSplats, chunkSplats + 1, 1000},
				func(n int) error { return checkCarve(t, t.refinable(n, mix{keep: 1}), t.ring(9), 0) })
		}),
		newCase("carve", "one view, and many", func(t *trial) error {
			return each([]int{1, 2, 300},
				func(n int) error { return checkCarve(t, t.refinable(300, mix{keep: 1}), t.ring(n), 0) })
		}),
		newCase("carve", "poison", func(t *trial) error {
			// means, log scales, opacity
			decide := append(indices(layout.RowQuats), indices(layout.RowSh)[layout.RowLogScales:]...)
			m := t.refinable(len(decide)*len(bad), mix{keep: 1})
			for i := range m.N {
				*modelAt(m, decide[i/len(bad)], i) = bad[i%len(bad)]
			}
			return checkCarve(t, m, t.ring(9), 0)
		}),
		newCase("carve", "values on thresholds", checkCarveThresholds),
		mixedCase("carve", "in mixed precision",
			func(t *trial) error { return checkCarve(t, t.refinable(400, mix{keep: 1}), t.ring(9), 0) }),
		newCase("carve", "a failed unit changes nothing", func(t *trial) error {
			return checkCarve(t, t.refinable(400, mix{keep: 1}), t.ring(9), layout.FailedSplats)
		}),
	}
}

// ring returns n views of the splats of t.splats from all around, pinhole and fisheye, each with empty space up to some
// depth among them, and the median of its points among them or beyond; one of four knows no points.
func (t *trial) ring(n int) []ref.Voter[float32] {
	voters := make([]ref.Voter[float32], n)
	for k := range voters {
		v := t.camera(64, 48)
		a := 2 * math.Pi * float64(k) / float64(n)
		c, s := float32(math.Cos(a)), float32(math.Sin(a))
		r := v.R
		for row := range 3 { // turned about y, so the camera goes round the origin
			x, z := r[3*row], r[3*row+2]
			v.R[3*row], v.R[3*row+2] = c*x-s*z, s*x+c*z
		}
		v.Fisheye = k%3 == 1
		voters[k].View = *v
		if t.IntN(4) > 0 {
			voters[k].Empty = 2 + 4*t.Float32()
			voters[k].Median = voters[k].Empty * (1 + t.Float32())
		}
	}
	return voters
}

// checkReach is how many distances to the nearest camera a splat may be large.
const checkReach = 1.5

// checkCarve carves a model. A splat within rounding of a threshold may go or stay.
func checkCarve(t *trial, m *ref.Model[float32], voters []ref.Voter[float32], failed uint32) error {
	l := t.list()
	d := l.upload(m, chunkSplats, max(1, blocksOf(m.N, chunkSplats)))
	list := make([]layout.Voter, len(voters))
	for k := range voters {
		list[k] = layout.Voter{View: paramsOf(&voters[k].View).View, Empty: voters[k].Empty, Median: voters[k].Median}
	}
	in := input(l, "voters", list)
	counters := input(l, "counters", junkCounters(map[int]uint32{layout.NActive: uint32(m.N), layout.Failed: failed}))
	for i, chunk := range d.chunks {
		l.r.Dispatch(&shaders.Carve{
			Counters: counters, Voters: in, Chunk: chunk.Slice,
			Push: shaders.CarvePush{
				FirstId: uint32(i * chunkSplats), ChunkSplats: chunkSplats, NVoters: uint32(len(voters)),
				FirstMoments:  uint32(d.momentRow(layout.RowLogitOpacities, 0)),
				SecondMoments: uint32(d.momentRow(layout.RowLogitOpacities, 1)), Reach: checkReach,
			},
		}, vk.Items(chunkSplats, 256))
	}
	if err := l.run(); err != nil {
		return err
	}
	if failed != 0 {
		return d.untouched()
	}
	return judgeCarve(d, m, voters)
}

// judgeCarve compares what was carved with the twin, and requires that nothing else changed.
func judgeCarve(d *model, m *ref.Model[float32], voters []ref.Voter[float32]) error {
	for c, chunk := range d.chunks {
		for k, was := range chunk.start {
			id, row := c*chunkSplats+k%chunkSplats, k/chunkSplats
			got := chunk.got[k]
			logit := chunk.got[layout.RowLogitOpacities*chunkSplats+k%chunkSplats]
			carved := id < m.N && math.Float32bits(logit) == math.Float32bits(layout.InvisibleLogit)
			want := was
			switch {
			case carved && row == layout.RowLogitOpacities:
				want = layout.InvisibleLogit
			case carved && (row == d.momentRow(layout.RowLogitOpacities, 0) ||
				row == d.momentRow(layout.RowLogitOpacities, 1)):
				want = 0
			}
			if math.Float32bits(got) != math.Float32bits(want) {
				return fmt.Errorf("binding chunk: row %d of splat %d: got %g, want %g", row, id, got, want)
			}
			if row == layout.RowLogitOpacities && id < m.N {
				if goes, sure := isFloater(m, voters, id); sure && goes != carved {
					return fmt.Errorf("binding chunk: splat %d is carved: %t, want %t", id, carved, goes)
				}
			}
		}
	}
	return nil
}

// isFloater is the twin's verdict; sure says that rounding cannot turn it.
func isFloater(m *ref.Model[float32], voters []ref.Voter[float32], id int) (goes, sure bool) {
	var mean [3]float64
	for k := range mean {
		mean[k] = float64(m.Means[3*id+k])
	}
	s := m.LogScales[3*id : 3*id+3]
	scale := math.Exp(float64(max(s[0], s[1], s[2])))
	sure = true
	for i, nudge := range []float64{1, 1 - 1e-4, 1 + 1e-4} {
		for j, wider := range []float64{1, 1 - 1e-4, 1 + 1e-4} {
			exact := make([]ref.Voter[float64], len(voters))
			for k := range voters {
				exact[k].View = *ref.ConvertView[float64](&voters[k].View)
				exact[k].Empty, exact[k].Median = float64(voters[k].Empty)*wider, float64(voters[k].Median)*wider
				exact[k].Cx *= nudge
			}
			verdict := ref.IsFloater(mean, scale*nudge/checkReach, exact)
			if i == 0 && j == 0 {
				goes = verdict
			}
			sure = sure && verdict == goes
		}
	}
	finite := scale < 1e18 && !math.IsNaN(mean[0]+mean[1]+mean[2]) &&
		math.Abs(mean[0])+math.Abs(mean[1])+math.Abs(mean[2]) < 1e18
	return goes, sure && finite // beyond, squares overflow, and such a splat is pruned for its size or as no number
}

// checkCarveThresholds puts splats at the depth where space ends to be empty, at the edge of the picture, and at the
// median depth of two voters against one, and makes some as large as their distance.
func checkCarveThresholds(t *trial) error {
	m := t.refinable(4*9, mix{keep: 1})
	v := ref.View[float32]{R: [9]float32{0: 1, 4: 1, 8: 1}, Fx: 50, Fy: 50, Cx: 32, Cy: 24, Width: 64, Height: 48}
	knows, other := ref.Voter[float32]{View: v, Empty: 2, Median: 9},
		ref.Voter[float32]{View: v, Empty: 0.5, Median: 1.5}
	for i := range m.N {
		near := float32(1 + 1e-7*float64(i%9-4))
		mean, scale := [3]float32{0.1, 0.1, 1}, float32(-7)
		switch i / 9 {
		case 0:
			mean[2] = 2 * near
		case 1:
			mean[0], mean[2] = 1.6*0.64*near, 1.6
		case 2:
			mean, scale = [3]float32{0, 0, 4}, float32(math.Log(4*float64(near)))
		case 3:
			mean[2] = 1.5 * near
		}
		copy(m.Means[3*i:], mean[:])
		m.LogScales[3*i], m.LogScales[3*i+1], m.LogScales[3*i+2] = scale, -9, -9
	}
	return checkCarve(t, m, []ref.Voter[float32]{knows, other, other}, 0)
}
