package output

import (
	"maps"
	"path/filepath"
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
