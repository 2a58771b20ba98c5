package capture

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSharpest takes the sharpest frame of each bucket, the first of equals.
func TestSharpest(t *testing.T) {
	how := sampling{rate: 10, take: 2}
	got := sharpest([]float64{1, 5, 2, 2, 1, 3, 3, 3, 3, 3, 9}, how)
	if !slices.Equal(got, []int{1, 5, 10}) {
		t.Errorf("taken are %v", got)
	}
	if got := sharpest(nil, how); len(got) > 0 {
		t.Errorf("of nothing %v", got)
	}
}

// TestSample looks at five frames for each that is taken, or at all.
func TestSample(t *testing.T) {
	for _, c := range []struct {
		fps    float64
		frames int
		v      video
		want   sampling
	}{
		{0, 0, video{rate: 30, seconds: 60}, sampling{10, 2}},
		{0, 0, video{rate: 30, seconds: 600}, sampling{2.5, 0.5}},
		{0, 0, video{rate: 30}, sampling{10, 2}},
		{10, 0, video{rate: 30, seconds: 60}, sampling{30, 10}},
		{60, 0, video{rate: 30, seconds: 60}, sampling{30, 30}},
		{0, 30, video{rate: 30, seconds: 60}, sampling{2.5, 0.5}},
	} {
		got, err := (&Options{Fps: c.fps, Frames: c.frames}).sample(&c.v)
		if err != nil || got != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	if _, err := (&Options{Frames: 30}).sample(&video{rate: 30}); err == nil {
		t.Error("a video of unknown length is divided")
	}
}

// TestParseProbe reads sizes as they are shown, rates and colours.
func TestParseProbe(t *testing.T) {
	v, err := parseProbe(`{"streams": [{"width": 1920, "height": 1080, "avg_frame_rate": "0/0",
		"r_frame_rate": "30000/1001", "color_transfer": "arib-std-b67", "color_space": "bt2020nc",
		"side_data_list": [{"side_data_type": "Display Matrix", "rotation": -90},
		{"side_data_type": "Spherical Mapping", "projection": "equirectangular"}]}], "format": {"duration": "12.5"}}`)
	if err != nil || v.width != 1080 || v.height != 1920 || v.seconds != 12.5 || int(v.rate) != 29 ||
		hdrTransfers[v.transfer] != "HLG" || !v.sphere {
		t.Errorf("%+v, %v", v, err)
	}
	for _, bad := range []string{"", "{}", `{"streams": [{"width": 0}]}`, `{"streams": [{"width": 5, "height": 5}]}`} {
		if _, err := parseProbe(bad); err == nil {
			t.Errorf("%q is a video", bad)
		}
	}
}

// TestSelection is true for the chosen frames alone.
func TestSelection(t *testing.T) {
	if got := selection([]int{3, 8, 9}); got != "if(lt(n,8),eq(n,3),if(lt(n,9),eq(n,8),eq(n,9)))" {
		t.Error(got)
	}
	long := make([]int, 5000)
	for i := range long {
		long[i] = 5 * i
	}
	deep, most := 0, 0
	for _, r := range selection(long) {
		switch r {
		case '(':
			deep++
			most = max(most, deep)
		case ')':
			deep--
		}
	}
	if most > 20 || deep != 0 {
		t.Errorf("brackets are %d deep", most)
	}
}

// TestParts reads what COLMAP prints of its progress, in its versions, and says how long it takes yet, where a minute
// has gone by.
func TestParts(t *testing.T) {
	var b strings.Builder
	p := &progress{w: &b, text: &sync.Mutex{}, how: "every line", name: "x"}
	parts := p.parts("part")
	p.began = time.Now().Add(-time.Minute)
	for _, c := range []struct{ line, want string }{
		{"Processed file [3/43]", "part 3 of 43  ETA 13m20s"},
		{"Matching block [2/4, 3/4] in 2s", "part 7 of 16  ETA 1m17s"},
		{"I1121 feature_matching.cc:87] Processing block [2/4, 3/4]", "part 7 of 16  ETA 1m40s"},
		{"I1121 feature_matching.cc:87] Processing block [4/4, 4/4]", "part 16 of 16  ETA 4s"},
		{"Processing block [1/9]", "part 1 of 9\n"}, {"Elapsed time: 1 [minutes]", ""},
	} {
		b.Reset()
		if parts(c.line); !strings.Contains(b.String(), c.want) || c.want == "" && b.String() != "" {
			t.Errorf("%s: %q, want %q", c.line, b.String(), c.want)
		}
	}
	b.Reset()
	cameras := p.cameras(20)
	for _, line := range []string{"Initializing with image pair #3 and #7", "Registering image #12 (4)",
		"Initializing with image pair #5 and #6", "I1121 incremental.cc] Registering frame #9 (num_reg_frames=7)"} {
		cameras(line)
	}
	for _, want := range []string{"4 of 20 photos have a camera\n", "7 of 20 photos have a camera, component 2\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
