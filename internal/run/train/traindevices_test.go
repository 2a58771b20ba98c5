package train

import (
	"testing"
)

// TestNamesDevices wants every way of naming a device that some machine has, and no other word, to pass for a value of
// --devices.
func TestNamesDevices(t *testing.T) {
	for list, want := range map[string]bool{
		"all": true, "auto": true, "0": true, "0,1": true, "0, 12": true,
		"aaaa0000-1111-2222-3333-444455556666,1": true, "AAAA0000111122223333444455556666": true,
		"GPU-aaaa0000-1111-2222-3333-444455556666": true, "0000:65:00.0": true, "65:00.0,c1:00.0": true,
		"00000000:C1:00.0": true,
		"":                 false, "gpu": false, "0,": false, "all,0": false, "-1": false, "65:00": false,
		"65:00.9":  false,
		"GPU-aaaa": false, "123456789": false,
	} {
		if NamesDevices(list) != want {
			t.Errorf("%q: %v", list, !want)
		}
	}
}
