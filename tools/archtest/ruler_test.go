package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// fakeProgram does what bench/ruler.sh asks of vksplat, without a device: the file names of a capture lists its cameras
// and their lenses, seed 3 fails, and a view's PSNR, after 10 steps, is the number of photos held out.
const fakeProgram = `#!/usr/bin/env bash
set -e
command=$1 scene=$2
shift 2 || shift
while [[ $# -gt 0 ]]; do
	case $1 in
	-m | -o) out=$2 ;;
	--seed) seed=$2 ;;
	--capture) scene=$2 ;;
	--test-list) held=$(cat "$2") ;;
	esac
	shift
done
case $command in
version) echo "vksplat 1.0" && exit ;;
inspect)
	awk 'BEGIN { printf "{\"cameras\": [" } { printf "%s{\"name\": \"%s\", \"lens\": \"%s\"}", s, $1, $2; s = ", " } END { print "]}" }' \
		"$scene/names"
	exit
	;;
train)
	[[ $out ]] || exit 0
	if [[ $seed == 3 ]]; then echo "no such luck" && exit 1; fi
	mkdir -p "$out/point_cloud/iteration_9"
	echo ply >"$out/point_cloud/iteration_9/point_cloud.ply"
	echo '{"device": "d", "loop_seconds": 1, "splats": 2, "train_images": 3, "peak_device_bytes": 4}' >"$out/stats.json"
	;;
esac
mkdir -p "$out"
held=${held:-every_8th}
for score in PSNR SSIM; do
	for name in $held; do echo "\"$name\": $(wc -w <<<"$held")"; done | paste -sd, | sed "s/.*/\"$score\": {&}/"
done | paste -sd, | sed 's/.*/{"ours_9": {}, "ours_10": {&}}/' >"$out/per_view.json"
`

// TestRuler runs bench/ruler.sh with a program that measures nothing: splits, rows that are kept, missing scenes and
// failed runs.
func TestRuler(t *testing.T) {
	if err := exec.Command("python3", "-c", "").Run(); err != nil {
		t.Skip("no python3")
	}
	if out, err := exec.Command("python3", "../../bench/ruler.py", "--selftest").CombinedOutput(); err != nil {
		t.Errorf("the gate is wrong: %v\n%s", err, out)
	}
	script := must.Get(filepath.Abs("../../bench/ruler.sh"))(t)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o755))
	}
	ruler := func(want int, args ...string) string {
		t.Helper()
		cmd := exec.Command(script, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "VKSPLAT=./fake", "DATA=.", "GPUS=3", "RECIPES=recipes")
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("ruler.sh %s: exit code %d, want %d\n%s", args, got, want, out)
		}
		return string(out)
	}
	rows := func() string {
		text, _ := os.ReadFile(filepath.Join(dir, "ruler.jsonl"))
		return string(text)
	}
	write("fake", fakeProgram)
	write("recipes", "# none\n")
	write("a/names", strings.Join(strings.Split("abcdefghijkl", ""), "\n")+"\n")
	write("list", "# scenes\na\nb\n")

	ruler(1, "list", "default", "1")
	if rows() != "" {
		t.Error("scenes are missing, and others were measured")
	}
	write("ruler.jsonl", `{"scene": "a", "spl`)
	ruler(0, "list", "default", "1", "--some")
	for split, held := range map[string]string{"std": "every_8th", "stretch": "g h i", "even": "b f j"} {
		_, row, _ := strings.Cut(rows(), `"split": "`+split)
		row, _, _ = strings.Cut(row, "\n")
		names := strings.Fields(held)
		for _, name := range names {
			if !strings.Contains(row, `"`+name+`": {"psnr": `+strconv.Itoa(len(names))+",") {
				t.Errorf("split %s: want %s held out, got %s", split, held, row)
			}
		}
	}
	write("panoramas/names", "a.jpg\nb.jpg/back.png EQUIRECTANGULAR\nb.jpg/up.png EQUIRECTANGULAR\nc/d.jpg\n")
	if out := ruler(0, "--held-out", "few:1", "panoramas"); out != "a.jpg\nc/d.jpg\n" {
		t.Errorf("all but the panorama are held out, got %q", out)
	}
	before := rows()
	if out := ruler(0, "list", "default", "1", "--some"); strings.Contains(out, ": done") || rows() != before {
		t.Errorf("runs that have rows were measured again:\n%s", out)
	}
	if out := ruler(1, "list", "default", "2,3", "--some"); strings.Count(out, ": done") != 3 ||
		strings.Count(out, "no such luck") != 3 {
		t.Errorf("seed 2 has three runs, those of seed 3 fail:\n%s", out)
	}
	t.Setenv("KEEP", "kept")
	write("kept/a-std-default-4/stats.json", "{}")
	if out := ruler(1, "list", "default", "4", "--some"); strings.Count(out, ": done") != 2 {
		t.Errorf("want two runs and one that would replace a run that was kept:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "kept/a-even-default-4/stats.json")); err != nil {
		t.Error(err)
	}
}
