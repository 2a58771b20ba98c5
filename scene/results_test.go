package scene

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMergeResults(t *testing.T) {
	dir := t.TempDir()
	if err := WriteResults(dir, "gsplat", []StepScores{{Step: 7000, Views: []ViewScore{{"a.png", 20, 0.5}}}}, false); err != nil {
		t.Fatal(err)
	}
	r := &Result{Method: MethodName(30000), Protocol: "inria", Views: []ViewScores{
		{"a.png", []Score{{"PSNR", 20, true}, {"LPIPS", 0.5, true}, {"SSIM", 0.5, true}}},
		{"b.png", []Score{{"PSNR", 30, true}, {"LPIPS", 0, false}, {"SSIM", 0.75, true}}},
	}}
	if err := MergeResults(dir, r); err != nil {
		t.Fatal(err)
	}
	means, protocol, err := ReadMeans(dir, "ours_30000")
	if err != nil || protocol != "inria" || len(means) != 2 || means["PSNR"] != 25 || means["SSIM"] != 0.625 {
		t.Errorf("%v of %s, %v", means, protocol, err)
	}
	if means, protocol, err = ReadMeans(dir, "ours_7000"); err != nil || protocol != "gsplat" || means["PSNR"] != 20 {
		t.Errorf("what was there: %v of %s, %v", means, protocol, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "per_view.json"))
	if err != nil {
		t.Fatal(err)
	}
	var views map[string]map[string]any
	if err := json.Unmarshal(data, &views); err != nil {
		t.Fatal(err)
	}
	if psnr, _ := views["ours_30000"]["PSNR"].(map[string]any); psnr["b.png"] != 30. || views["ours_30000"]["LPIPS"] != nil || views["ours_7000"]["SSIM"] == nil {
		t.Errorf("per_view.json holds %s", data)
	}
	if err := WriteResults(dir, "gsplat", []StepScores{{8000, []ViewScore{{"a.png", 21, 0.5}}, nil}, {30000, []ViewScore{{"a.png", 22, 0.5}}, nil}}, true); err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]float64{"ours_7000": 0, "ours_8000": 21, "ours_30000": 25} { // the first is no more of the run, the last was measured by hand
		if means, _, err := ReadMeans(dir, method); (err == nil) != (want > 0) || means["PSNR"] != want {
			t.Errorf("after training went on: %s is %v, %v", method, means, err)
		}
	}
	if _, _, err := ReadMeans(dir, "ours_1"); !errors.Is(err, ErrData) {
		t.Errorf("a method that is not there: %v", err)
	}
	r.Views[0].Scores[0].Value = math.Inf(1)
	if err := MergeResults(dir, r); !errors.Is(err, errNotFinite) {
		t.Errorf("infinite: %v", err)
	}
	for _, text := range []string{"", "[]", "{\"ours_1\": ", "nonsense"} {
		if err := os.WriteFile(filepath.Join(dir, "results.json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ReadMeans(dir, "ours_1"); !errors.Is(err, ErrData) || !strings.Contains(err.Error(), "results.json") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzReadMeans(f *testing.F) {
	f.Add([]byte(`{"ours_1": {"PSNR": 20, "protocol": "inria"}}`))
	f.Add([]byte(`{"ours_1": []}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, "results.json"), data, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ReadMeans(dir, "ours_1"); err != nil && !errors.Is(err, ErrData) {
			t.Error(err)
		}
	})
}
