package train

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/filetest"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
)

// TestSweep removes what killed writes of a run left, and no file of others.
func TestSweep(t *testing.T) {
	o := NewOptions()
	o.Out = t.TempDir()
	r := NewRun(o, &cli.Console{})
	r.saver = newSaver(r)
	filetest.Make(t, o.Out, ".per_view.json.tmp123", ".report.html.tmp4", ".origin.json.tmp1", ".demo.png.tmp5",
		"..written.json.tmp8", ".probe77", "checkpoints/.step_7.safetensors.tmp1",
		"checkpoints/.save_at.json.tmp1", "point_cloud/iteration_7/.point_cloud.ply.tmp9", "test/ours_7/.a.png.tmp3",
		"test/ours_7/left/.b.png.tmp3",
		"test/ours_7/."+strings.Repeat("n", 200)+".tmp3")
	others := []string{".notes.txt.tmp1", ".report.html.tmp4a", "report.html.tmp4", ".probe", "checkpoints/.other.tmp1",
		"checkpoints/step_7.safetensors",
		"point_cloud/.point_cloud.ply.tmp9", "point_cloud/iteration_x/.point_cloud.ply.tmp9", "test/ours_7/.a.txt.tmp3",
		"test/ours_7/a.png", "test/.a.png.tmp3"}
	filetest.Make(t, o.Out, others...)
	r.sweep()
	slices.Sort(others)
	if got := filetest.List(t, o.Out); !slices.Equal(slices.Sorted(slices.Values(got)), others) {
		t.Errorf("left are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(others, "\n"))
	}
}

// TestPutAside takes away what an earlier run wrote, and no file of others, and brings it back.
func TestPutAside(t *testing.T) {
	o := NewOptions()
	o.Out = t.TempDir()
	r := NewRun(o, &cli.Console{})
	s := newSaver(r)
	old := []string{"report.html", "point_cloud/iteration_7/point_cloud.ply", "point_cloud/iteration_8/point_cloud.ply",
		"test/ours_7/a.png", "test/ours_7/left/b.png"}
	filetest.Make(t, o.Out, old...)
	others := []string{"point_cloud/iteration_7/edited.ply", "test/ours_7/left/notes.txt"}
	filetest.Make(t, o.Out, others...)
	s.left = s.leftovers()
	if err := s.putAside(-1); err != nil {
		t.Fatal(err)
	}
	visible := func() []string {
		return slices.DeleteFunc(filetest.List(t, o.Out), func(name string) bool { return strings.HasPrefix(name, ".") })
	}
	if got := visible(); !slices.Equal(got, others) {
		t.Errorf("left are %q, want %q", got, others)
	}
	if output.IsFolder(filepath.Join(o.Out, "point_cloud", "iteration_8")) {
		t.Error("an empty folder of a model is left")
	}
	if back, err := output.RecoverAside(o.Out); !back || err != nil {
		t.Fatal(back, err)
	}
	all := slices.Sorted(slices.Values(slices.Concat(old, others)))
	if got := filetest.List(t, o.Out); !slices.Equal(slices.Sorted(slices.Values(got)), all) {
		t.Errorf("after it came back there are %q, want %q", got, all)
	}
}

// TestOwnPictures puts aside the pictures that a run wrote, and none that the user put among them or changed. Nor does
// a run that is cleared away take those along.
func TestOwnPictures(t *testing.T) {
	o := NewOptions()
	o.Out = t.TempDir()
	r := NewRun(o, &cli.Console{})
	s := newSaver(r)
	r.saver = s
	wrote := []string{"test/ours_7/a.png", "test/ours_7/left/b.png", "test/ours_7/changed.png"}
	mine := []string{"test/ours_7/changed.png", "test/ours_7/left/mine.png", "test/ours_7/mine.png"}
	filetest.Make(t, o.Out, append(mine, wrote...)...)
	own := output.ReadWritten(o.Out)
	if err := errors.Join(own.Begin(captured.PathsIn(o.Out, wrote)...), own.End()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.Out, "test/ours_7/changed.png"), []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	before := filetest.List(t, o.Out)
	s.left = s.leftovers()
	if err := errors.Join(s.putAside(-1), s.list()); err != nil {
		t.Fatal(err)
	}
	pictures := func() []string {
		return slices.DeleteFunc(filetest.List(t, o.Out), func(name string) bool { return !strings.HasPrefix(name, "test") })
	}
	if got := pictures(); !slices.Equal(got, mine) {
		t.Errorf("left are %q, want %q", got, mine)
	}
	if back, err := output.RecoverAside(o.Out); !back || err != nil {
		t.Fatal(back, err)
	}
	if got := filetest.List(t, o.Out); !slices.Equal(got, before) {
		t.Errorf("after it came back there are %q, want %q", got, before)
	}
}
