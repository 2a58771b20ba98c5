package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"vksplat/internal/fault"
)

// TestErrorLines wants the prefix on every line, a line for each of joined errors, and none twice.
func TestErrorLines(t *testing.T) {
	var errs bytes.Buffer
	c := New(nil, nil, &errs)
	one := errors.New("no room")
	c.Fail(errors.Join(fault.WithHint(fmt.Errorf("save: %w", errors.Join(one, errors.New("no rights"))),
		"Make room."), one, errors.New("no rights")))
	if got, want := errs.String(), "vksplat: error: save: no room\nvksplat: error: no rights\nvksplat: error: no "+
		"room\nhint: make room\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestOutputChecked keeps the first error of standard output, but for a reader that is gone.
func TestOutputChecked(t *testing.T) {
	other, errPrint := errors.New("other"), errors.New("print")
	for _, tt := range []struct {
		write, err error
		want       string
		code       int
	}{
		{nil, nil, "", fault.ExitOK},
		{syscall.EPIPE, nil, "", fault.ExitOK},
		{syscall.EPIPE, errPrint, "", fault.ExitOK},
		{syscall.EPIPE, other, "other", fault.ExitFailure},
		{syscall.ENOSPC, nil, "write to standard output: no space left on device", fault.ExitTryAgain},
		{syscall.ENOSPC, errPrint, "write to standard output: no space left on device", fault.ExitTryAgain},
		{syscall.EIO, other, "other\nwrite to standard output: input/output error", fault.ExitTryAgain},
	} {
		o := &Stdout{W: failingWriter{tt.write}}
		_, failed := o.Write([]byte("x"))
		got := ""
		if tt.err == errPrint { // of a command that looked at errors itself
			tt.err = fmt.Errorf("print plan: %w", failed)
		}
		err := o.Checked(tt.err)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want || fault.ExitCode(err) != tt.code {
			t.Errorf("%v, then %v: %q, exit code %d", tt.write, tt.err, got, fault.ExitCode(err))
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: w.err}
	}
	return len(p), nil
}
