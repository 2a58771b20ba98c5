package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	must "vksplat/internal/musttest"
)

func TestErrorKindsAndText(t *testing.T) {
	kinds := []error{ErrData, ErrTryAgain, ErrUsage}
	for _, test := range []struct {
		err  *Error
		kind error
		text string
	}{
		{&Error{Op: "read cameras", Path: "a/b", Err: fs.ErrNotExist}, ErrData,
			"read cameras: a/b: file does not exist"},
		{&Error{Op: "write", Err: fs.ErrNotExist, Kind: ErrTryAgain}, ErrTryAgain, "write: file does not exist"},
		{&Error{Op: "load", Path: "x", Kind: ErrUsage}, ErrUsage, "load: x"},
	} {
		if got := test.err.Error(); got != test.text {
			t.Errorf("text %q, want %q", got, test.text)
		}
		wrapped := fmt.Errorf("train: %w", test.err)
		for _, kind := range kinds {
			if errors.Is(wrapped, kind) != (kind == test.kind) {
				t.Errorf("%v is of kind %v: %v", wrapped, kind, kind != test.kind)
			}
		}
		if test.err.Err != nil && !errors.Is(wrapped, fs.ErrNotExist) {
			t.Errorf("%v hides its cause", wrapped)
		}
	}
}

// TestText keeps texts as they are: joined errors a line each where nothing is said of them, and paths that look like
// the beginning of a text.
func TestText(t *testing.T) {
	inner := &Error{Op: "open store", Path: "scene: a", Err: errors.New("timeout")}
	joined := errors.Join(errors.New("first"), inner)
	for _, test := range []struct {
		err  error
		want string
	}{
		{inner, "open store: scene: a: timeout"},
		{&Error{Op: "end lease", Err: inner}, "end lease: open store: scene: a: timeout"},
		{WithHint(joined, "retry"), "first\nopen store: scene: a: timeout"},
		{Usagef("retry", "flag %s: %w", "x", inner), "flag x: open store: scene: a: timeout"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
	if WithHint(nil, "retry") != nil {
		t.Error("a hint makes an error")
	}
}

type child struct{ error }

func (child) Exit() int { return 3 }

func TestExitCode(t *testing.T) {
	diverged := Sentinel(ErrData, "diverged", "")
	small := Sentinel(ErrMachine, "too small", "")
	lost := Sentinel(ErrDeviceLost, "device lost", "")
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, ExitOK},
		{errors.New("defect"), ExitFailure},
		{WithHint(errors.New("defect"), "report it"), ExitFailure},
		{&Error{Op: "read"}, ExitData},
		{WithHint(&Error{Op: "read"}, "spell it"), ExitData},
		{fmt.Errorf("step 3: %w", diverged), ExitData},
		{fmt.Errorf("plan: %w", small), ExitTryAgain},
		{&Error{Op: "read photo", Err: lost}, ExitTryAgain},
		{Usagef("", "flag: %w", &Error{Op: "read"}), ExitUsage},
		{&Error{Op: "open root", Kind: ErrSetup}, ExitSetup},
		{fmt.Errorf("write: %w", syscall.ENOSPC), ExitTryAgain},
		{&Error{Op: "read", Err: syscall.EACCES}, ExitData},
		{fmt.Errorf("train: %w", context.Canceled), ExitInterrupted},
		{errors.Join(Usagef("", "flag"), ErrInterrupted), ExitInterrupted},
		{fmt.Errorf("block 2: %w", child{errors.New("it ended")}), 3},
	} {
		if got := ExitCode(test.err); got != test.want {
			t.Errorf("%v: exit code %d, want %d", test.err, got, test.want)
		}
	}
}

func TestSettings(t *testing.T) {
	many := Sentinel(ErrUsage, "too many", "raise "+Setting("most"))
	if got := Hint(fmt.Errorf("plan: %w", many)); got != "raise --most" {
		t.Errorf("hint %q", got)
	}
	if got := Named("fps", "seconds"); got != "flags --fps and --seconds" {
		t.Errorf("settings are named %q", got)
	}
	if got := Hint(fmt.Errorf("%w: %w", many, &Error{Hint: "raise it to 5"})); got != "raise it to 5" {
		t.Errorf("hint %q: the sentinel's comes last", got)
	}
}

// TestCauses has a parent read what a child reports.
func TestCauses(t *testing.T) {
	err := errors.Join(fmt.Errorf("submit: %w", Sentinel(ErrDeviceLost, "gone", "")),
		fmt.Errorf("write: %w", syscall.ENOSPC), fmt.Errorf("start colmap: %w", ErrMissing))
	kind, names := Names(err)
	list := errors.Join(Causes(kind, names)...)
	for _, want := range []error{ErrDeviceLost, syscall.ENOSPC, ErrMissing} {
		if !errors.Is(list, want) {
			t.Errorf("%s, %q is without %v", kind, names, want)
		}
	}
	for _, e := range exits {
		kind, _ := Names(e.kind)
		if list := errors.Join(Causes(kind, nil)...); ExitCode(list) != e.code {
			t.Errorf("%v becomes %q, %v", e.kind, kind, list)
		}
	}
	if kind, _ := Names(syscall.EACCES); kind != "try-again" {
		t.Errorf("no permission is of kind %q", kind)
	}
	if kind, names := Names(ErrFailure); kind != "" || names != nil {
		t.Errorf("a failure is of kind %q, %q", kind, names)
	}
}

func TestHintIsFoundThroughWrapping(t *testing.T) {
	inner := &Error{Op: "open", Hint: "inner"}
	for _, test := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("plain"), ""},
		{inner, "inner"},
		{fmt.Errorf("a: %w", fmt.Errorf("b: %w", inner)), "inner"},
		{errors.Join(errors.New("first"), inner), "inner"},
		{&Error{Op: "load", Err: inner}, "inner"},
		{&Error{Op: "load", Err: inner, Hint: "outer"}, "outer"},
		{&Error{Op: "load"}, ""},
	} {
		if got := Hint(test.err); got != test.want {
			t.Errorf("hint of %v: %q, want %q", test.err, got, test.want)
		}
	}
}

// TestReadFile reads a file, and refuses folders and what is larger than allowed.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	must.Do(t, os.WriteFile(file, []byte("four"), 0o600))
	if data, err := ReadFile(file, 4); err != nil || string(data) != "four" {
		t.Errorf("%q, %v", data, err)
	}
	for path, want := range map[string]string{file: "it has 4 bytes, at most 3 are read", dir: ErrNotRegular.Error(),
		filepath.Join(dir, "none"): os.ErrNotExist.Error()} {
		if _, err := ReadFile(path, 3); err == nil || strings.Contains(err.Error(), dir) ||
			err.Error() != want && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}
