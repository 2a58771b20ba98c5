package train

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/results"
)

// step returns the progress of a step with numbers that tell it from others.
func step(n int) pipeline.Progress {
	return pipeline.Progress{Step: n, Loss: float32(n), L1: 0.5, MSE: 0.01, SSIM: 0.75, Splats: 100 + n, Visible: 50,
		Isects: 200}
}

// logSteps writes the steps from, up to and with the last, as a run does.
func logSteps(t *testing.T, h *history, f *metricsFile, from, to, total int) {
	t.Helper()
	for n := from; n <= to; n++ {
		p := step(n)
		if l := h.add(&p, total, float64(n), func() meter.DeviceUse {
			return meter.DeviceUse{Bytes: 1 << 20, Seconds: 0.5}
		}); l != nil {
			must.Do(t, f.Observe(&Logged{l}))
		}
	}
}

// TestMetricsResume wants the file of a run that was cut off and resumed to be the
// file of a run that was not, but for the clock.
func TestMetricsResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), output.MetricsFile)
	views := []results.ViewScore{{Name: "a.png", PSNR: 20, SSIM: 0.5}, {Name: "b.png", PSNR: 30.123456789, SSIM: 0.7}}
	open := func(step int, aside string, resumed bool) (*history, *metricsFile) {
		h := must.Get(readHistory(path, step, 10, parseInterval(aside, step), resumed))(t)
		f := &metricsFile{path: path}
		there := func(path string) string { return path }
		must.Do(t, f.Observe(&Started{Options: &Options{}, At: there, Past: h}))
		return h, f
	}
	begin := func(f *metricsFile) {
		must.Do(t, f.Observe(&Begun{}))
	}
	drawn := &results.Drawn{Near: 0.01}
	m, f := open(0, "", false)
	begin(f)
	logSteps(t, m, f, 1, 30, 100)
	must.Do(t, f.Observe(&Measured{m.eval(30, 130, 30, views, drawn)}))
	logSteps(t, m, f, 31, 43, 100)
	aside := m.since.text()
	logSteps(t, m, f, 44, 57, 100)
	// Killed while it wrote a line; the last checkpoint is of step 43.
	must.Get(f.f.WriteString(`{"event":"step","st`))(t)
	must.Do(t, f.Close())
	m, f = open(43, aside, true)
	if m.since.N != 3 || parseInterval(aside, 2) != (interval{}) || parseInterval("", 43) != (interval{}) ||
		parseInterval(`{"n":-1}`, 43) != (interval{}) {
		t.Errorf("%d steps without a line, want 3 and none of what no checkpoint of ours says", m.since.N)
	}
	if m.evaluated(30, drawn) == nil || m.evaluated(30, &results.Drawn{Near: 0.02}) != nil ||
		m.evaluated(40, drawn) != nil || len(m.scores()) != 1 || m.scores()[0].Views[1] != views[1] {
		t.Errorf("scores %v", m.scores())
	}
	if m.secondsBefore != 40 {
		t.Errorf("%g seconds before, want 40", m.secondsBefore)
	}
	begin(f)
	logSteps(t, m, f, 44, 100, 100)
	must.Do(t, f.Close())
	data := must.Get(os.ReadFile(path))(t)
	var at []int
	for line := range bytes.Lines(data) {
		var l meter.StepLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		at = append(at, l.Step)
		if want := float64(l.Step) - 4.5; l.Event == meter.EventStep && float64(l.Loss) != want {
			t.Errorf("step %d: loss %g, want the mean %g", l.Step, float64(l.Loss), want)
		}
	}
	if want := []int{10, 20, 30, 30, 40, 50, 60, 70, 80, 90, 100}; !slices.Equal(at, want) {
		t.Errorf("lines of steps %v, want %v", at, want)
	}
	for _, step := range []int{0, 43} { // from the start, and from a checkpoint of another folder
		m, f = open(step, "", false)
		must.Do(t, f.Close())
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, data) || len(m.evals) > 0 {
			t.Errorf("a run that does not begin leaves %d bytes of %d, %v", len(now), len(data), err)
		}
	}
	_, f = open(0, "", false)
	begin(f)
	if data, err := os.ReadFile(path); err != nil || len(data) > 0 {
		t.Errorf("a new run begins with %d bytes, %v", len(data), err)
	}
	must.Do(t, f.Close())
}

func TestReadStepsThins(t *testing.T) {
	var b bytes.Buffer
	for n := 1; n <= 1000; n++ {
		must.Do(t, cli.WriteLine(&b,
			meter.StepLine{Event: meter.EventStep, Step: n, ETA: meter.Rounded(math.NaN())}))
	}
	b.WriteString("no json\n{\"event\":\"eval\",\"step\":1000}\n")
	got := meter.ReadSteps(&b, 100)
	if len(got) < 100 || len(got) > 201 || got[0].Step != 1 || got[len(got)-1].Step != 1000 {
		t.Errorf("%d points from %d to %d", len(got), got[0].Step, got[len(got)-1].Step)
	}
	if !slices.IsSortedFunc(got, func(a, b meter.StepLine) int { return a.Step - b.Step }) {
		t.Error("not in order")
	}
	if len(meter.ReadSteps(strings.NewReader(""), 100)) != 0 {
		t.Error("points of nothing")
	}
}

// TestStableKeys pins the names that other programs read.
func TestStableKeys(t *testing.T) {
	for want, v := range map[string]any{
		"device_busy device_bytes eta_s event isects l1 loss peak_rss_bytes psnr seconds splats ssim step " +
			"steps_per_s total visible": meter.StepLine{},
		"event psnr psnr_median seconds splats ssim ssim_median step views": EvalLine{},
		"budget_bytes device event out planned_bytes points resolution scene step test_images total train_images " +
			"version": StartLine{},
	} {
		data := must.Get(json.Marshal(v))(t)
		fields := map[string]any{}
		must.Do(t, json.Unmarshal(data, &fields))
		if got := strings.Join(slices.Sorted(maps.Keys(fields)), " "); got != want {
			t.Errorf("%T has the keys %s\nwant %s", v, got, want)
		}
	}
}

// TestAdviseOnlyLongRuns wants one warning of a run of more than an hour, and none of a shorter one.
func TestAdviseOnlyLongRuns(t *testing.T) {
	for _, tt := range []struct {
		rate float64
		want int
	}{{1, 1}, {100, 0}, {0, 0}} {
		var errs bytes.Buffer
		o, console := NewOptions(), cli.New(nil, &errs, &errs)
		o.Again = func(changes ...Change) string { return fmt.Sprint(changes) }
		r := &progress{o: o, console: console,
			started: &Started{Capture: &scene.Capture{Cameras: []scene.Camera{{Width: 100}}}}}
		p := meter.New(&bytes.Buffer{}, meter.Plain, 0, o.Config.Iterations)
		p.Last, p.Rate = step(200), tt.rate
		r.advise(p)
		if len(console.Notices()) != tt.want || tt.want == 1 &&
			!(strings.Contains(errs.String(), "8h16m to go at 1.00 steps/s") &&
				strings.Contains(errs.String(), "give: [{steps-scaler 0.05 false}]")) {
			t.Errorf("at %g steps/s: %q", tt.rate, errs.String())
		}
	}
}

// TestWatch ends a run after a round of photos without a splat, however the round began, and only warns of a model that
// was lost later.
func TestWatch(t *testing.T) {
	const seen = 100 // added to the view of a step that shows splats
	for _, test := range []struct {
		name          string
		from, total   int
		views         []int
		blind, warned bool
	}{
		{"a round", 0, 30, []int{2, 0, 1}, true, false},
		{"not yet", 0, 30, []int{2, 0, 2}, false, false},
		{"from the middle of a round", 7, 30, []int{1, 1, 2, 0}, true, false},
		{"a photo that cannot be decoded", 0, 30, []int{0, 1, 0, 1, 0, 1}, true, false},
		{"one photo shows a splat", 0, 30, []int{0, 1, 2 + seen, 0, 1, 2}, false, false},
		{"lost later", 0, 30, []int{0 + seen, 1, 2, 0, 1, 2, 0}, false, true},
		{"the last step of a resumed run", 29, 30, []int{1}, false, true},
	} {
		var said bytes.Buffer
		o := &Options{Scene: "garden"}
		o.Config.Iterations = test.total
		s := &sight{o: o, warn: cli.New(nil, io.Discard, &said).Warn, photos: 3, from: test.from,
			visited: map[int]bool{}}
		var blind error
		for i, view := range test.views {
			if blind != nil {
				t.Errorf("%s: ended after step %d", test.name, i)
			}
			blind = s.step(&pipeline.Progress{Step: test.from + i + 1, View: view % seen, Visible: view / seen})
		}
		if (blind != nil) != test.blind || strings.Contains(said.String(), "nothing is learnt") != test.warned {
			t.Errorf("%s: error %v, said %q", test.name, blind, said.String())
		}
		if test.blind && (fault.ExitCode(blind) != fault.ExitData || fault.Hint(blind) == "") {
			t.Errorf("%s: exit code %d, hint %q", test.name, fault.ExitCode(blind), fault.Hint(blind))
		}
	}
}
