package captured

import (
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
)

func TestReadOrigin(t *testing.T) {
	dir, other := t.TempDir(), [3]float64{1, 2, 3}
	if got, err := ReadOrigin(filepath.Join(dir, "cameras.json"), other); err != nil || got != other {
		t.Errorf("without a file: %v, %v", got, err)
	}
	want := [3]float64{500000, -4500000, 0}
	if err := output.WriteJSON(dir+"/"+output.OriginFile, OriginRecord{Origin: want}); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadOrigin(filepath.Join(dir, "cameras.json"), other); err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
	if err := os.WriteFile(dir+"/"+output.OriginFile, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadOrigin(filepath.Join(dir, "cameras.json"), other); fault.ExitCode(err) != fault.ExitData || fault.Hint(err) == "" {
		t.Errorf("of a damaged file: %v, exit code %d, hint %q", err, fault.ExitCode(err), fault.Hint(err))
	}
}
