package worker

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/farm/spec"
	"vksplat/scene"
)

// TestSeat has one worker of a name at a time in a work folder, which keeps its identity, and others beside it.
func TestSeat(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	dir := t.TempDir()
	worker := func(name string) *node { return &node{Options: Options{Work: dir, Node: name, Log: log}} }
	home, leave, err := worker("gpu 1").seat(t.Context())
	if err != nil || home == "" {
		t.Fatal(home, err)
	}
	var e *scene.Error
	if _, _, err := worker("gpu 1").seat(t.Context()); !errors.Is(err, scene.ErrTryAgain) || !errors.As(err, &e) || e.Hint == "" || !strings.Contains(err.Error(), "another worker of this name") {
		t.Errorf("a second worker of the name: %v", err)
	}
	other, leaveOther, err := worker("gpu 2").seat(t.Context())
	if err != nil || other == "" || other == home {
		t.Error(other, err)
	}
	leaveOther()
	leave()
	again, leave, err := worker("gpu 1").seat(t.Context())
	if err != nil || again != home {
		t.Errorf("the next of the name: %q, %v, want %q", again, err, home)
	}
	leave()
	if said.Len() > 0 {
		t.Error(said.String())
	}
	// A lock that cannot be had for another reason is not taken as somebody's.
	if err := os.Mkdir(filepath.Join(dir, "worker-x.lock"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, _, err := worker("x").seat(t.Context()); err == nil || strings.Contains(err.Error(), "another worker") {
		t.Errorf("a lock that cannot be opened: %v", err)
	}
}

// TestUnfit has tasks be declined where the node lacks what they need, with the reason.
func TestUnfit(t *testing.T) {
	n := &node{Options: Options{Work: t.TempDir(), Lacks: map[spec.Kind]string{spec.KindEncode: "there is no program ffmpeg"}}}
	d := &Device{ID: "aaaa0000-1111-2222-3333-444455556666", PCI: "0000:65:00.0", Name: "GPU", Driver: "1.2", MemoryBytes: 8 << 30}
	train := func(pin spec.Pin, l spec.Limits) *spec.Task {
		return &spec.Task{Kind: spec.KindTrain, Pin: pin, Limits: l}
	}
	for _, c := range []struct {
		task *spec.Task
		want string // part of the reason, "" for none
	}{
		{&spec.Task{Kind: spec.KindEncode}, "ffmpeg"},
		{&spec.Task{Kind: spec.KindConvert}, ""},
		{train(spec.Pin{}, spec.Limits{}), ""},
		{train(spec.Pin{}, spec.Limits{DiskMinGB: 1 << 20}), "GB of disk"},
		{train(spec.Pin{}, spec.Limits{VRAMMinMB: 9000}), "MB of device memory"},
		{train(spec.Pin{}, spec.Limits{VRAMMinMB: 8192}), ""},
		{train(spec.Pin{Device: "GPU"}, spec.Limits{}), ""},
		{train(spec.Pin{Device: strings.ToUpper(d.ID)}, spec.Limits{}), ""},
		{train(spec.Pin{Device: "GPU-" + d.ID}, spec.Limits{}), ""},
		{train(spec.Pin{Device: "0000:65:00.0"}, spec.Limits{}), ""},
		{train(spec.Pin{Device: "00000000:65:00.0"}, spec.Limits{}), ""},
		{train(spec.Pin{Device: "0000:66:00.0"}, spec.Limits{}), "pinned to the device"},
		{train(spec.Pin{Device: "GPU-"}, spec.Limits{}), "pinned to the device"},
		{train(spec.Pin{Device: "GP"}, spec.Limits{}), "pinned to the device"},
		{train(spec.Pin{Driver: "1.3"}, spec.Limits{}), "pinned to the driver"},
	} {
		if got := n.unfit(c.task, d); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", *c.task, got, c.want)
		}
	}
}
