package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"vksplat/internal/fault"
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
		{fmt.Errorf("begin: %w", pipeline.ErrTooMany), fault.ExitUsage},
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

// TestGoneFlags says what to do without flags that capture had.
func TestGoneFlags(t *testing.T) {
	for _, words := range [][]string{{"--gpu", "on"}, {"--loops"}, {"--vocab-tree", "a.bin"}, {"--features", "aliked"}} {
		var out, errs bytes.Buffer
		code := run(append([]string{"capture", "photos", "-o", "scene"}, words...), &out, &errs)
		if code != fault.ExitUsage || !strings.Contains(errs.String(), "hint: leave it out") {
			t.Errorf("%v: code %d, %s", words, code, errs.String())
		}
	}
}
