package pipeline

import (
	"context"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/recipe"
	"vksplat/vk"
)

// TestSplitSubmits cuts a step into many submits: the bytes stay.
func TestSplitSubmits(t *testing.T) {
	d := testDevice(t)
	short := func(c *recipe.Config) { c.Iterations = 12 }
	want, _ := trainHash(t, d, short)
	views, init, scale, cfg := promiseScene(t)
	short(&cfg)
	tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
	defer tr.Close()
	r := vk.NewRecorder(d.dev)
	tr.shards.first.e.setup.record(r, tr.shards.first.e.programs.frames[0], recipe.Step)
	for op := 2; op < r.Len()-1; op += 3 {
		tr.shards.first.e.programs.split[recipe.Step] = append(tr.shards.first.e.programs.split[recipe.Step], op)
	}
	must.Do(t, tr.shards.first.e.programs.build())
	must.Do(t, tr.Run(context.Background(), nil))
	s := must.Get(tr.Splats())(t)
	if got := modelHash(s); got != want {
		t.Errorf("in %d submits %s, in one %s", len(tr.shards.first.e.programs.split[recipe.Step])+1, got, want)
	}
}

// TestPace makes splits from measured times.
func TestPace(t *testing.T) {
	ms := func(list ...int64) (times []vk.PassTime) {
		for _, x := range list {
			times = append(times, vk.PassTime{Name: "rasterize", Nanoseconds: x * 1e6})
		}
		return times
	}
	for _, c := range []struct {
		name       string
		times      []vk.PassTime
		split      []int
		moreBands  bool
		splitFirst []int
	}{
		{name: "short", times: ms(50, 60, 70)},
		{name: "long", times: ms(90, 40, 90, 40, 90), split: []int{1, 3}},
		{name: "split enough", times: ms(90, 40, 90, 40, 90), splitFirst: []int{1, 3}},
		{name: "one pass too long", times: ms(10, 250, 10), split: []int{0, 1}, moreBands: true},
	} {
		p := pace{times: c.times, split: c.splitFirst}
		changed := p.tooLong() && p.plan(true)
		if changed != (c.split != nil) {
			t.Errorf("%s: changed %v", c.name, changed)
		}
		if changed && (!slices.Equal(p.split, c.split) || p.moreBands != c.moreBands) {
			t.Errorf("%s: split %v more bands %v, want %v %v", c.name, p.split, p.moreBands, c.split, c.moreBands)
		}
	}
}

// TestPaceDue counts which of the first frame's steps have timestamps: the first ones, and then one of so many; begun
// anew, the first ones again.
func TestPaceDue(t *testing.T) {
	p := pace{}
	timed := func(steps int) (at []int) {
		for i := range steps {
			if p.wantsTimes() {
				at = append(at, i)
			}
		}
		return at
	}
	first := []int{0, 1, 2, 3, 4, 5}
	if got, want := timed(70),
		append(slices.Clone(first), 5+timedOneOf, 5+2*timedOneOf, 5+3*timedOneOf); !slices.Equal(got, want) {
		t.Errorf("timed are %v, want %v", got, want)
	}
	p.off = true
	p.reset()
	if got := timed(7); !slices.Equal(got, first) || !p.off {
		t.Errorf("after a reset, timed are %v, off %v", got, p.off)
	}
}
