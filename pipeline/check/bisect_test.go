package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	musttest "vksplat/internal/musttest"
	"vksplat/shaders"
	"vksplat/vk"
	"vksplat/vk/vktest"
)

// wrongTwin is a case of n elements whose expectation is wrong for the sixth.
func wrongTwin(n int) Case {
	return newCase("bench_copy", "wrong twin", over([]int{n}, func(t *trial, n int) {
		data := make([][4]uint32, n)
		for i := range data {
			data[i] = [4]uint32{t.Uint32(), t.Uint32(), t.Uint32(), t.Uint32()}
		}
		want := slices.Clone(data)
		if n > 5 {
			want[5][0] ^= 1
		}
		t.dispatch(&shaders.BenchCopy{CopyFrom: in(t, data...), CopyTo: out[[4]uint32](t, n, exactly(want...)),
			Push: shaders.BenchCopyPush{N: uint32(n)}}, vk.Items(n, 256))
		t.run()
	}))
}

// TestBisect halves a case of 4000 elements whose sixth is wrong to one of 7, and replays what is left from JSON. With
// the right expectation the same file passes.
func TestBisect(t *testing.T) {
	d := vktest.Device(t)
	open := func() (*vk.Device, error) { return d, nil }
	var log bytes.Buffer
	good := newCase("tile_offsets", "good", func(t *trial) { checkTileOffsets(t, 10, 20, 15, 0, 300) })
	r, err := bisect(&printer{w: &log}, []Case{good, wrongTwin(4000)}, open)
	t.Log(log.String())
	if !errors.Is(err, ErrKernels) || r == nil || r.Wrong == nil || r.Case != "bench_copy/wrong twin" || r.Halvings != 9 || r.Device == "" {
		t.Fatalf("%+v", r)
	}
	var back Repro
	musttest.Do(t, json.Unmarshal(musttest.Get(json.Marshal(r))(t), &back))
	if err := back.Run(d); !errors.Is(err, ErrKernels) || !strings.Contains(err.Error(), "1 of 28 words are wrong, "+
		"first [20]") {
		t.Errorf("replayed: %v", err)
	}
	back.Wrong.Want = back.Buffers[back.Wrong.Buffer].Got[back.Wrong.At:][:len(back.Wrong.Want)]
	musttest.Do(t, back.Run(d))
	back.Wrong = nil
	if err := back.Run(d); !errors.Is(err, ErrKernels) || !strings.Contains(err.Error(), "the same bytes") {
		t.Errorf("without an expectation: %v", err)
	}
	if r, err := bisect(&printer{w: &log}, []Case{good}, open); r != nil || err != nil {
		t.Errorf("nothing fails: %v, %v", r, err)
	}
}

// TestRecorded runs again what cases ran, with several passes and all kinds of buffers: the same bytes come back.
func TestRecorded(t *testing.T) {
	d := vktest.Device(t)
	cases := Cases()
	for _, kernel := range []string{"rasterize_bwd", "scan_tiles", "project_bwd_adam", "sort_scatter"} {
		c := cases[slices.IndexFunc(cases, func(c Case) bool { return c.Kernel == kernel })]
		var runs recording
		musttest.Do(t, c.run(d, 2, &runs))
		r := runs.runs[len(runs.runs)-1]
		if err := r.Run(d); !errors.Is(err, ErrKernels) {
			t.Errorf("%s/%s: %v", c.Kernel, c.Name, err)
		}
	}
}

// TestHalved wants cases with halved inputs not to fail where whole ones do not: they may only refuse.
func TestHalved(t *testing.T) {
	if !filetest.Long() {
		t.Skip("VKSPLAT_LONG=1 runs every kernel with fewer elements")
	}
	d := vktest.Device(t)
	whole := 0
	for _, c := range Cases() {
		for _, n := range []int{1, 3, mostHalvings} {
			if _, err := c.attempt(d, n); err != nil {
				t.Errorf("halved %d times: %v", n, err)
			} else {
				whole++
			}
		}
	}
	t.Logf("%d runs", whole)
}
