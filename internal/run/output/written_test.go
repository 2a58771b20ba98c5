package output

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

// TestAddWritten adds a file to the list of a run that goes on: what that run has open stays so.
func TestAddWritten(t *testing.T) {
	dir := t.TempDir()
	open, added := filepath.Join(dir, MetricsFile), filepath.Join(dir, DemoPicture)
	must.Do(t, ReadWritten(dir).Begin(open, filepath.Join(dir, ReportFile)))
	filetest.Make(t, dir, MetricsFile, DemoPicture)
	must.Do(t, AddWritten(dir, added))
	want := map[string]string{MetricsFile: "", ReportFile: "", DemoPicture: markOf(added)}
	if got := ReadWritten(dir).Files; !maps.Equal(got, want) {
		t.Errorf("listed are %v, want %v", got, want)
	}
}

// TestStepFolders wants the folders of steps in their order, and no others: the last one is the newest.
func TestStepFolders(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []string{"30000", "700", "7000", "500", "x"} {
		filetest.Make(t, dir, filepath.Join(ModelFolder+step, ModelName))
	}
	want := PathsIn(dir, []string{ModelFolder + "700", ModelFolder + "7000", ModelFolder + "30000"})
	if got := StepFolders(dir, ModelFolder, 500); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
