package worker

import (
	"testing"

	"vksplat/farm/task"
)

// TestTakenDevice says once each time that tasks wait for a device which another worker of this machine has.
func TestTakenDevice(t *testing.T) {
	var notes []string
	w := &worker{Options: Options{Locks: t.TempDir(), Pools: []string{"any"},
		Devices: []task.Device{{Name: "GPU", UUID: "1"}},
		Note:    func(text string) { notes = append(notes, text) }}}
	first, second := w.places()[0], w.places()[0]
	release, ok := first.ready()
	for range 2 {
		if _, both := second.ready(); !ok || both {
			t.Fatal("both have the device")
		}
	}
	const want = "tasks wait for GPU, which another worker or run on this machine uses"
	if len(notes) != 1 || notes[0] != want {
		t.Errorf("it says %q", notes)
	}
	release()
	if release, ok = second.ready(); !ok {
		t.Fatal("the device is free, and it does not take it")
	}
	release()
	if _, ok := first.ready(); !ok {
		t.Fatal("it is free once more")
	}
	if _, both := second.ready(); both || len(notes) != 2 || notes[1] != want {
		t.Errorf("the second time it says %q", notes)
	}
}
