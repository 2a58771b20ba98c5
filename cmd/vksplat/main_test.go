package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/train"
	"vksplat/pipeline"
)

func TestExitCode(t *testing.T) {
	tests := []struct {
		err  error
		want int
	}{
		{nil, fault.ExitOK},
		{errors.New("defect"), fault.ExitFailure},
		{fault.Usagef("", "nonsense"), fault.ExitUsage},
		{&fault.Error{Op: "read", Err: errors.New("cut short")}, fault.ExitData},
		{&fault.Error{Op: "write", Err: syscall.ENOSPC, Kind: fault.ErrTryAgain}, fault.ExitTryAgain},
		{&os.PathError{Op: "write", Err: syscall.EROFS}, fault.ExitTryAgain},
		{fmt.Errorf("step: %w", pipeline.ErrDeviceLost), fault.ExitTryAgain},
		{&fault.Error{Op: "write", Path: "x", Err: pipeline.ErrDeviceLost}, fault.ExitTryAgain},
		{pipeline.ErrOutOfMemory, fault.ExitTryAgain},
		{fmt.Errorf("train step 7: %w", pipeline.ErrNoSplats), fault.ExitData},
		{fmt.Errorf("read limits: %w", pipeline.ErrBadLimits), fault.ExitUsage},
		{fmt.Errorf("%w after step 3", fault.ErrInterrupted), fault.ExitInterrupted},
		{context.Canceled, fault.ExitInterrupted},
	}
	for _, tt := range tests {
		if got := fault.ExitCode(tt.err); got != tt.want {
			t.Errorf("%v: exit code %d, want %d", tt.err, got, tt.want)
		}
		if got := fault.ExitCode(errors.Join(tt.err, nil)); got != tt.want {
			t.Errorf("%v, joined: exit code %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestReadOrigin(t *testing.T) {
	dir, other := t.TempDir(), [3]float64{1, 2, 3}
	if got, err := captured.ReadOrigin(dir, other); err != nil || got != other {
		t.Errorf("without a file: %v, %v", got, err)
	}
	want := [3]float64{500000, -4500000, 0}
	if err := output.WriteJSON(dir+"/"+output.OriginFile, captured.OriginRecord{Origin: want}); err != nil {
		t.Fatal(err)
	}
	if got, err := captured.ReadOrigin(dir, other); err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
	if err := os.WriteFile(dir+"/"+output.OriginFile, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := captured.ReadOrigin(dir, other); fault.ExitCode(err) != fault.ExitData || fault.Hint(err) == "" {
		t.Errorf("of a damaged file: %v, exit code %d, hint %q", err, fault.ExitCode(err), fault.Hint(err))
	}
}

func TestTexts(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{cli.Duration(41.7), "42s"}, {cli.Duration(185), "3m05s"}, {cli.Duration(7620), "2h07m"},
		{train.CompiledText(30, 0.9, false), ""},
		{train.CompiledText(30, 2.04, true), "compiling 30 kernels took 2.0 s"},
		{train.CompiledText(30, 2.04, false), "compiling 30 kernels took 2.0 s; they are kept for the next run"},
		{pipeline.BytesText(900), "900 B"}, {pipeline.BytesText(1536), "1.5 KiB"},
		{pipeline.BytesText(512 << 20), "512 MiB"},
		{meter.RateText(4.2), "4.20 steps/s"}, {meter.RateText(317.4), "317 steps/s"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
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
		o := &cli.Stdout{W: failingWriter{tt.write}}
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
