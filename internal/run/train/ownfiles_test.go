package train

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

// TestSweep removes what killed writes of a run left, and no file of others.
func TestSweep(t *testing.T) {
	o := NewOptions()
	o.Out = t.TempDir()
	r := NewRun(o, &cli.Console{})
	filetest.Make(t, o.Out, ".per_view.json.tmp123", ".report.html.tmp4", "sparse/0/.images.bin.tmp2",
		".origin.json.tmp1", ".demo.png.tmp5",
		"..written.json.tmp8", ".probe77", "checkpoints/.step_7.safetensors.tmp1",
		"checkpoints/.save_at.json.tmp1", "point_cloud/iteration_7/.point_cloud.ply.tmp9", "test/ours_7/.a.png.tmp3",
		"test/ours_7/left/.b.png.tmp3",
		"test/ours_7/."+strings.Repeat("n", 200)+".tmp3")
	others := []string{".notes.txt.tmp1", ".report.html.tmp4a", "report.html.tmp4", ".probe", "checkpoints/.other.tmp1",
		"checkpoints/step_7.safetensors",
		"point_cloud/.point_cloud.ply.tmp9", "point_cloud/iteration_x/.point_cloud.ply.tmp9", "test/ours_7/.a.txt.tmp3",
		"test/ours_7/a.png", "test/.a.png.tmp3"}
	filetest.Make(t, o.Out, others...)
	r.place.sweep()
	slices.Sort(others)
	if got := filetest.List(t, o.Out); !slices.Equal(slices.Sorted(slices.Values(got)), others) {
		t.Errorf("left are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(others, "\n"))
	}
}

// TestReplaceOwn replaces what an earlier run wrote, and no file that the user put among it or changed. A run that has
// written nothing that counts leaves all as it was.
func TestReplaceOwn(t *testing.T) {
	for _, ends := range []bool{false, true} {
		o := NewOptions()
		o.Out = t.TempDir()
		r := NewRun(o, cli.New(nil, io.Discard, io.Discard))
		s := &r.place
		wrote := []string{"report.html", "point_cloud/iteration_7/point_cloud.ply", "point_cloud/iteration_8/point_cloud.ply",
			"test/ours_7/a.png", "test/ours_7/changed.png", "test/ours_7/left/b.png", "test/ours_8/a.png"}
		filetest.Make(t, o.Out, wrote...)
		own := output.ReadWritten(o.Out)
		must.Do(t, errors.Join(own.Begin(output.PathsIn(o.Out, wrote)...), own.End()))
		mine := []string{output.WrittenFile, "point_cloud/iteration_7/edited.ply", "test/ours_7/changed.png",
			"test/ours_7/left/mine.png", "test/ours_7/left/notes.txt", "test/ours_7/mine.png"}
		filetest.Make(t, o.Out, mine[1:]...)
		must.Do(t, os.WriteFile(filepath.Join(o.Out, "test/ours_7/changed.png"), []byte("mine"), 0o666))
		want := filetest.List(t, o.Out)
		s.old = output.Replaced(o.Out, -1)
		must.Do(t, errors.Join(s.stage(), s.list()))
		if ends {
			want = append(mine, output.StatsFile)
			filetest.Make(t, o.Out, output.NextFolder+"/"+output.StatsFile)
			must.Do(t, s.replaceEarlier())
		} else if err := s.undo(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		if got := slices.Sorted(slices.Values(filetest.List(t, o.Out))); !slices.Equal(got, want) {
			t.Errorf("ends %v: there are %q, want %q", ends, got, want)
		}
		if left := output.IsFolder(filepath.Join(o.Out, "test", "ours_8")); left == ends {
			t.Errorf("an empty folder of pictures: %v", left)
		}
	}
}
