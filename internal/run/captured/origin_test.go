package captured

import (
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

func TestReadOrigin(t *testing.T) {
	dir, other := t.TempDir(), [3]float64{1, 2, 3}
	if got, err := ReadOrigin(filepath.Join(dir, "cameras.json"), other); err != nil || got != other {
		t.Errorf("without a file: %v, %v", got, err)
	}
	want := [3]float64{500000, -4500000, 0}
	must.Do(t, output.WriteJSON(dir+"/"+output.OriginFile, OriginRecord{Origin: want}))
	if got, err := ReadOrigin(filepath.Join(dir, "cameras.json"), other); err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
	must.Do(t, os.WriteFile(dir+"/"+output.OriginFile, []byte("{"), 0o666))
	if _, err := ReadOrigin(filepath.Join(dir, "cameras.json"), other); fault.ExitCode(err) != fault.ExitData || fault.Hint(err) == "" {
		t.Errorf("of a damaged file: %v, exit code %d, hint %q", err, fault.ExitCode(err), fault.Hint(err))
	}
}
