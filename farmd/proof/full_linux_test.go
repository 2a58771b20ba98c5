package proof

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/client"
	"vksplat/farm/flow"
	"vksplat/farm/pass"
	"vksplat/internal/fault"
)

// A server whose disk is full says so, itself and to whoever submits a job or joins, and goes on once there is room:
// what it had accepted comes to its end.
func TestFullDisk(t *testing.T) {
	roots, file := newStore(t)
	s := prepare(t, "--roots", file)
	if err := os.Mkdir(s.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", s.data, "tmpfs", 0, "size=24m"); err != nil {
		t.Skip("needs a disk of its own: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(s.data, syscall.MNT_DETACH) })
	s.start()
	anna, gpu := s.join("--role", "submit", "--name", "anna"), s.join("--role", "worker", "--name", "gpu")
	run := mustSubmit(t, s.client(anna), roots, "anna", demos("before", 3))
	token := s.mustCommand("token", "--role", "view", "--name", "wall")
	fill, err := os.Create(filepath.Join(s.data, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = fill.Write(make([]byte, 1<<12))
	}
	if !errors.Is(err, syscall.ENOSPC) || fill.Close() != nil {
		t.Fatal(err)
	}
	farm, err := client.Dial(t.Context(), client.Options{Address: s.address, Namespace: flow.Namespace, Owner: "anna",
		TLS: anna.TLS.Clone()})
	if err != nil {
		t.Fatal(err)
	}
	defer farm.Close()
	begin := func() error {
		return farm.Set(t.Context(), run.GetID(), flow.Change{Max: new(int)})
	}
	if err := begin(); err == nil || !strings.Contains(err.Error(), flow.NoRoom) || fault.Hint(err) == "" {
		t.Errorf("a job was changed: %v", err)
	}
	if _, err := pass.Join(t.Context(), token, "", s.passDir(), false); err == nil ||
		!strings.Contains(err.Error(), flow.NoRoom) {
		t.Errorf("joined: %v", err)
	}
	if out, err := s.command("token", "--role", "view", "--name", "desk"); err == nil ||
		!strings.Contains(out, "room on the disk") {
		t.Errorf("a token: %s", out)
	}
	if text, _ := s.said.all(); strings.Count(text, "has no room") != 1 || strings.Contains(text, "Failed to commit") {
		t.Errorf("the server said:\n%s", text)
	}
	if err := os.Remove(fill.Name()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); begin() != nil; time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			t.Fatalf("there is room, but: %v", begin())
		}
	}
	if _, err := pass.Join(t.Context(), token, "", s.passDir(), false); err != nil {
		t.Errorf("the token that did not work for want of room: %v", err)
	}
	work(t, s.client(gpu), demoQueue, 2, func(context.Context, flow.TaskInput) error { return nil })
	var state flow.State
	if err := run.Get(t.Context(), &state); err != nil || state.Done != 3 {
		t.Errorf("%+v, %v", state, err)
	}
}
