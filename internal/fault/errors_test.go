package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestErrorKindsAndText(t *testing.T) {
	kinds := []error{ErrData, ErrTryAgain, ErrUsage}
	for _, test := range []struct {
		err  *Error
		kind error
		text string
	}{
		{&Error{Op: "read cameras", Path: "a/b", Err: fs.ErrNotExist}, ErrData, "scene: read cameras: a/b: file does not exist"},
		{&Error{Op: "write", Err: fs.ErrNotExist, Kind: ErrTryAgain}, ErrTryAgain, "scene: write: file does not exist"},
		{&Error{Op: "load", Path: "x", Kind: ErrUsage}, ErrUsage, "scene: load: x"},
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

func TestErrorTextNamesNoPackages(t *testing.T) {
	inner := &Error{Op: "open store", Path: "scene: a", Err: errors.New("timeout")}
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("plain"), "plain"},
		{inner, "open store: a: timeout"},
		{&Error{Op: "end lease", Err: inner}, "end lease: open store: a: timeout"},
		{errors.Join(errors.New("scene: first"), inner), "first\nopen store: a: timeout"},
		{errors.New("of a scenery: rock"), "of a scenery: rock"},
	} {
		if got := Text(test.err); got != test.want {
			t.Errorf("text of %v: %q, want %q", test.err, got, test.want)
		}
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
