package results

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/scene"
)

func TestMergeResults(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, WriteResults(dir, "gsplat", []StepScores{
		{Step: 7000, Views: []ViewScore{{Name: "a.png", PSNR: 20, SSIM: 0.5}}}}, false))
	r := &Result{Method: MethodName(30000), Protocol: "inria", Views: []ViewScores{
		{"a.png", []Score{{"PSNR", 20, true}, {"LPIPS", 0.5, true}, {"SSIM", 0.5, true}}},
		{"b.png", []Score{{"PSNR", 30, true}, {"LPIPS", 0, false}, {"SSIM", 0.75, true}}},
	}}
	if replaced, err := MergeResults(dir, r); err != nil || !slices.Equal(replaced, []string{"ours_7000"}) {
		t.Fatalf("replaced %q, %v", replaced, err)
	}
	means, protocol, err := ReadMeans(dir, "ours_30000")
	if err != nil || protocol != "inria" || len(means) != 2 || means["PSNR"] != 25 || means["SSIM"] != 0.625 {
		t.Errorf("%v of %s, %v", means, protocol, err)
	}
	if _, _, err = ReadMeans(dir, "ours_7000"); err == nil {
		t.Error("scores of two protocols are in one file")
	}
	var views map[string]map[string]any
	filetest.ReadJSON(t, filepath.Join(dir, "per_view.json"), &views)
	if psnr, _ := views["ours_30000"]["PSNR"].(map[string]any); psnr["b.png"] != 30. ||
		views["ours_30000"]["LPIPS"] != nil || views["ours_7000"] != nil {
		t.Errorf("per_view.json holds %v", views)
	}
	must.Do(t, WriteResults(dir, "gsplat",
		[]StepScores{{8000, []ViewScore{{Name: "a.png", PSNR: 21, SSIM: 0.5}}, nil, nil},
			{30000, []ViewScore{{Name: "a.png", PSNR: 22, SSIM: 0.5}}, nil, nil}},
		true))
	for method, want := range map[string]float64{"ours_7000": 0, "ours_8000": 21, "ours_30000": 22} {
		if means, _, err := ReadMeans(dir, method); (err == nil) != (want > 0) || means["PSNR"] != want {
			t.Errorf("after training went on: %s is %v, %v", method, means, err)
		}
	}
	if _, _, err := ReadMeans(dir, "ours_1"); !errors.Is(err, fault.ErrData) {
		t.Errorf("a method that is not there: %v", err)
	}
	r.Views[0].Scores[0].Value = math.Inf(1)
	if _, err := MergeResults(dir, r); !errors.Is(err, scene.ErrNotFinite) {
		t.Errorf("infinite: %v", err)
	}
	for _, text := range []string{"", "[]", "{\"ours_1\": ", "nonsense"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, "results.json"), []byte(text), 0o666))
		if _, _, err := ReadMeans(dir, "ours_1"); !errors.Is(err, fault.ErrData) ||
			!strings.Contains(err.Error(), "results.json") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestNearest wants train and eval to write a view's distance to those trained on to the same place, and nothing of it
// among means.
func TestNearest(t *testing.T) {
	dir := t.TempDir()
	nearest := map[string]scene.Nearest{"a.png": {Degrees: 12.5, Distance: 0.25}, "b.png": {Degrees: 1, Distance: 1}}
	must.Do(t, WriteResults(dir, "gsplat", []StepScores{{Step: 7, Nearest: nearest,
		Views: []ViewScore{{Name: "a.png", PSNR: 20, SSIM: 0.5}}}}, false))
	must.Get(MergeResults(dir, &Result{Method: "eval", Protocol: "gsplat", Nearest: nearest,
		Views: []ViewScores{{"a.png", []Score{{"PSNR", 20, true}}}}}))(t)
	for _, method := range []string{"ours_7", "eval"} {
		for key, want := range map[string]float64{"nearest_degrees": 12.5, "nearest_distance": 0.25} {
			if views, _, err := ReadViews(dir, method, key); err != nil || len(views) != 1 || views["a.png"] != want {
				t.Errorf("%s of %s: %v, %v", key, method, views, err)
			}
		}
		if means, _, err := ReadMeans(dir, method); err != nil || means["PSNR"] != 20 || means["nearest_degrees"] != 0 {
			t.Errorf("means of %s: %v, %v", method, means, err)
		}
	}
}

// TestLensStays: scores that only training can measure stay when eval measures the same model once more, and go with
// the others where it measures another one, by another protocol or drawn otherwise.
func TestLensStays(t *testing.T) {
	drawn := &Drawn{Near: 0.01, Background: [3]float32{1, 0, 0}, Photos: "64x48"}
	trained := []StepScores{{7, []ViewScore{{Name: "a.png", PSNR: 20, SSIM: 0.5, Extra: through(22, 0.6)},
		{Name: "b.png", PSNR: 30, SSIM: 0.7, Extra: through(32, 0.8)}}, drawn, nil}}
	result := func(protocol string, drawn *Drawn, a, b float64, name string) *Result {
		return &Result{Method: MethodName(7), Protocol: protocol, Drawn: drawn, Views: []ViewScores{
			{"a.png", []Score{{"PSNR", a, true}}}, {name, []Score{{"PSNR", b, true}}}}}
	}
	white := *drawn
	white.Background = [3]float32{1, 1, 1}
	for _, c := range []struct {
		name  string
		of    *Result
		stays bool
	}{
		{"the same", result("gsplat", drawn, 20.000001, 29.999999, "b.png"), true},
		{"another model", result("gsplat", drawn, 20, 30.1, "b.png"), false},
		{"another view", result("gsplat", drawn, 20, 30, "c.png"), false},
		{"another protocol", result("inria", drawn, 20, 30, "b.png"), false},
		{"another background", result("gsplat", &white, 20, 30, "b.png"), false},
		{"nobody knows how", result("gsplat", nil, 20, 30, "b.png"), false},
	} {
		dir := t.TempDir()
		must.Do(t, WriteResults(dir, "gsplat", trained, false))
		for range 2 { // again, and once more
			must.Get(MergeResults(dir, c.of))(t)
		}
		means, _, err := ReadMeans(dir, "ours_7")
		if err != nil || (means["lens_psnr"] == 27 && math.Abs(means["lens_ssim"]-0.7) < 1e-12) != c.stays ||
			(len(means) == 3) != c.stays {
			t.Errorf("%s: %v, %v", c.name, means, err)
		}
		views, _, err := ReadViews(dir, "ours_7", "lens_ssim")
		if err != nil || (views["b.png"] == 0.8) != c.stays {
			t.Errorf("%s: views %v, %v", c.name, views, err)
		}
	}
}

// TestLPIPSStays: scores that need weights stay when eval measures the same model without them, with the hash of the
// weights, and go where it measures another.
func TestLPIPSStays(t *testing.T) {
	drawn := &Drawn{Near: 0.01, Photos: "64x48"}
	result := func(psnr, corrected float64, lpips bool) *Result {
		r := &Result{Method: "ours_7", Protocol: "inria", Drawn: drawn, Views: []ViewScores{{"a.png",
			[]Score{{"PSNR", psnr, true}, {"LPIPS", 0.25, lpips}, {"cc_psnr", corrected, true},
				{"cc_lpips", 0.125, lpips}}}}}
		if lpips {
			r.Weights = "hash"
		}
		return r
	}
	for _, c := range []struct {
		name            string
		psnr, corrected float64
		lpips, ccLPIPS  float64
	}{{"the same", 20.000001, 21, 0.25, 0.125}, {"by another map of colours", 20, 22, 0.25, 0},
		{"another model", 21, 21, 0, 0}} {
		dir := t.TempDir()
		for _, r := range []*Result{result(20, 21, true), result(c.psnr, c.corrected, false)} {
			must.Get(MergeResults(dir, r))(t)
		}
		means, _, err := ReadMeans(dir, "ours_7")
		if err != nil || means["LPIPS"] != c.lpips || means["cc_lpips"] != c.ccLPIPS {
			t.Errorf("%s: %v, %v", c.name, means, err)
		}
		entry, _, err := readMethod(filepath.Join(dir, "per_view.json"), "ours_7")
		if err != nil || (entry[weightsKey] == "hash") != (c.lpips > 0) || (entry["LPIPS"] != nil) != (c.lpips > 0) {
			t.Errorf("%s: views %v, %v", c.name, entry, err)
		}
	}
}

func FuzzReadMeans(f *testing.F) {
	f.Add([]byte(`{"ours_1": {"PSNR": 20, "protocol": "inria"}}`))
	f.Add([]byte(`{"ours_1": []}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		must.Do(t, os.WriteFile(filepath.Join(dir, "results.json"), data, 0o666))
		if _, _, err := ReadMeans(dir, "ours_1"); err != nil && !errors.Is(err, fault.ErrData) {
			t.Error(err)
		}
	})
}

// TestDrawn wants files to say how models were drawn, and scores without that to be replaced.
func TestDrawn(t *testing.T) {
	dir := t.TempDir()
	old := []StepScores{{Step: 7, Views: []ViewScore{{Name: "a.png", PSNR: 20, SSIM: 0.5}}}}
	drawn := &Drawn{Near: 0.05, NearUnits: 0.2, Background: [3]float32{1, 0.5, 0}, Antialiased: true, Photos: "64x48"}
	must.Do(t, WriteResults(dir, "gsplat", append(old, StepScores{8, old[0].Views, drawn, nil}), false))
	result := &Result{Method: "pictures", Protocol: "gsplat",
		Views: []ViewScores{{"a.png", []Score{{"PSNR", 20, true}}}}}
	must.Get(MergeResults(dir, result))(t)
	for method, want := range map[string]*Drawn{"ours_7": nil, "ours_8": drawn, "ours_9": nil} {
		if got, err := ReadDrawn(dir, method); err != nil || (got == nil) != (want == nil) || got != nil &&
			*got != *want {
			t.Errorf("%s: %+v, %v", method, got, err)
		}
	}
	if text := drawn.String(); text != "near plane 0.05, background 1,0.5,0, antialiased" {
		t.Error(text)
	}
	result.Method, result.Drawn = "ours_7", drawn
	must.Get(MergeResults(dir, result))(t)
	if got, err := ReadDrawn(dir, "ours_7"); err != nil || got == nil || *got != *drawn {
		t.Errorf("measured again: %+v, %v", got, err)
	}
}

func TestResults(t *testing.T) {
	dir := t.TempDir()
	steps := []StepScores{
		{Step: 7000, Views: []ViewScore{{Name: "b.png", PSNR: 20, SSIM: 0.5}, {Name: "a.png", PSNR: 30, SSIM: 0.75}}},
		{Step: 30000, Views: []ViewScore{{Name: "a.png", PSNR: math.Inf(1), SSIM: 1}}},
	}
	must.Do(t, WriteResults(dir, "gsplat", steps, false))
	got := must.Get(os.ReadFile(filepath.Join(dir, "results.json")))(t)
	want := "{\n \"ours_30000\": {\n  \"PSNR\": 100,\n  \"SSIM\": 1,\n  \"protocol\": \"gsplat\"\n },\n " +
		"\"ours_7000\": {\n  \"PSNR\": 25,\n  \"SSIM\": 0.625,\n  \"protocol\": \"gsplat\"\n }\n}\n"
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	var views map[string]map[string]any
	filetest.ReadJSON(t, filepath.Join(dir, "per_view.json"), &views)
	score := func(key, view string) any {
		values, _ := views["ours_7000"][key].(map[string]any)
		return values[view]
	}
	if score("PSNR", "a.png") != 30. || score("SSIM", "b.png") != 0.5 || views["ours_30000"]["protocol"] != "gsplat" {
		t.Errorf("per_view.json holds %s", got)
	}
	if err := WriteResults(dir, "gsplat", []StepScores{{Step: 1}}, false); err == nil {
		t.Error("a step without views passes")
	}
	if err := WriteResults(dir, "gsplat", []StepScores{{1, []ViewScore{{Name: "a", PSNR: math.NaN()}}, nil, nil}},
		false); !errors.Is(err, scene.ErrNotFinite) {
		t.Errorf("NaN: %v", err)
	}
}

// through are scores through the lens.
func through(psnr, ssim float64) Extra[*float64] {
	return Extra[*float64]{LensPSNR: &psnr, LensSSIM: &ssim}
}

// TestDrawnAlike takes units for the same that differ as those of refined cameras do, and nothing else.
func TestDrawnAlike(t *testing.T) {
	d := Drawn{Near: 0.01, NearUnits: 0.03, Photos: "64x48"}
	entry := func(change func(d *Drawn)) (e any) {
		was := d
		change(&was)
		text := must.Get(json.Marshal(was))(t)
		must.Do(t, json.Unmarshal(text, &e))
		return e
	}
	for name, c := range map[string]struct {
		change func(d *Drawn)
		want   bool
	}{
		"the same":       {func(*Drawn) {}, true},
		"refined":        {func(d *Drawn) { d.NearUnits *= 1.002 }, true},
		"another unit":   {func(d *Drawn) { d.NearUnits *= 1.02 }, false},
		"another near":   {func(d *Drawn) { d.Near = 0.02 }, false},
		"smaller photos": {func(d *Drawn) { d.Photos = "32x24" }, false},
	} {
		if got := drawnAlike(&d, entry(c.change)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if drawnAlike(&d, nil) {
		t.Error("scores that do not say how they were drawn")
	}
}
