//go:build unix

package task

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vksplat/internal/child"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// fakeCapture has two stages. The first is not done again; in the second it waits where it is told to.
func fakeCapture(how, out string) int {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	write := func(name string) {
		_ = os.MkdirAll(filepath.Dir(filepath.Join(out, name)), 0o777)
		_ = os.WriteFile(filepath.Join(out, name), []byte(name), 0o666)
	}
	if how == "lacks" {
		return fakeError(&fault.Error{Op: "start colmap", Err: fault.ErrMissing, Hint: "install it",
			Kind: fault.ErrMachine})
	}
	if _, err := os.Stat(filepath.Join(out, "images", "photo")); err == nil {
		fmt.Fprintln(os.Stderr, "photos:   done before")
	} else {
		child.Report(child.Event{Event: "step", Stage: "photos", Total: 2})
		write("images/photo")
		write("database.db")
	}
	child.Report(child.Event{Event: "step", Stage: "mapping", Step: 1, Total: 3})
	if how == "waits" {
		select {
		case <-stop:
			return fault.ExitInterrupted
		case <-time.After(time.Minute):
		}
	}
	for _, name := range []string{"components/0/points", "logs/mapping.log", "sparse/0/points",
		"sparse/0/project.ini", "verdict.json"} {
		write(name)
	}
	return 0
}

// fakeError fails as the program does.
func fakeError(err error) int {
	kind, causes := fault.Names(err)
	child.Report(child.Event{Event: child.EventError, Text: err.Error(), Hint: fault.Hint(err), Kind: kind,
		Causes: causes})
	return fault.ExitCode(err)
}

const captureTask = "[[task]]\nkind = \"capture\"\nsource = \"scan\"\n"

// TestStages stops a task in its second stage: the next attempt does not repeat the first, and what only attempts read
// is none of the results.
func TestStages(t *testing.T) {
	f := newFarmOf(t, captureTask)
	t.Setenv(fakeVariable, "waits")
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	o := f.options(0, 1, "a")
	o.Report = func(p Progress) {
		if p.Message == "mapping" && p.Step == 1 && p.Of == 3 {
			end(ErrStopped)
		}
	}
	if _, err := Run(ctx, o); ExitOf(err) != fault.ExitTryAgain {
		t.Fatal(err)
	}
	t.Setenv(fakeVariable, "")
	m := must.Get(Run(t.Context(), f.options(0, 2, "a")))(t)
	var names []string
	for _, file := range m.Files {
		names = append(names, file.Name)
	}
	if got := strings.Join(names, " "); got != "images/photo sparse/0/points verdict.json" {
		t.Errorf("the results are %s", got)
	}
	if log := f.read("capture", "log", "a00002.log"); !strings.Contains(log, "photos:   done before") {
		t.Errorf("it began anew: %s", log)
	}
}

// TestLacksProgram has another machine try a task whose program is not installed here.
func TestLacksProgram(t *testing.T) {
	f := newFarmOf(t, captureTask)
	t.Setenv(fakeVariable, "lacks")
	if _, err := Run(t.Context(), f.options(0, 1, "a")); ExitOf(err) != fault.ExitSetup || fault.Hint(err) != "install it" {
		t.Errorf("exit code %d: %v; %s", ExitOf(err), err, fault.Hint(err))
	}
}
