package main

import (
	"errors"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"vksplat/farm/flow"
	"vksplat/farm/pass"
)

// TestRoom learns of a full disk from the log of Temporal's server, says so to people and not to workers, who try
// again, and keeps what comes of it out of the log.
func TestRoom(t *testing.T) {
	var r room
	var written strings.Builder
	level := zap.NewAtomicLevelAt(zapcore.ErrorLevel)
	log := zap.New(watched{zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()),
		zapcore.AddSync(&written), level), &r})
	person, worker := pass.Who{Role: pass.Submit}, pass.Who{Role: pass.Worker}
	away := serviceerror.NewUnavailable("shard status unknown")
	if err := r.explain(t.Context(), person, away); !errors.Is(err, away) {
		t.Errorf("there is room, but: %v", err)
	}
	log.Error("something else")
	log.Error("Authorization error", zap.Error(errors.New("too many requests a second by anna")))
	level.SetLevel(zapcore.FatalLevel) // as before the server serves
	log.Error("store failed", zap.Error(errors.New("Failed to commit transaction. Error: database or disk is full (13)")))
	level.SetLevel(zapcore.ErrorLevel)
	log.Error("shard status unknown")
	if text := written.String(); !r.is() || strings.Count(text, "\n") != 1 || !strings.Contains(text, "something else") {
		t.Errorf("no room %v; the log:\n%s", r.is(), text)
	}
	var failed *serviceerror.FailedPrecondition
	if err := r.explain(t.Context(), person, away); !errors.As(err, &failed) || failed.Message != flow.NoRoom {
		t.Errorf("a person is told: %v", err)
	}
	odd := errors.New("AppendHistoryNodes: row already exist: database or disk is full (13)")
	if err := r.explain(t.Context(), person, odd); !errors.As(err, &failed) {
		t.Errorf("a person is told: %v", err)
	}
	if err := r.explain(t.Context(), worker, away); !errors.Is(err, away) {
		t.Errorf("a worker is told: %v", err)
	}
	ctx, end := r.bound(t.Context())
	defer end()
	if <-ctx.Done(); !errors.As(r.explain(ctx, person, ctx.Err()), &failed) {
		t.Errorf("of a request that took long a person is told: %v", ctx.Err())
	}
	missing := serviceerror.NewNotFound("no such job")
	if err := r.explain(t.Context(), person, missing); !errors.Is(err, missing) {
		t.Errorf("of a job that is not there: %v", err)
	}
	for method, is := range map[string]bool{"/a.B/StartWorkflowExecution": true, "/a.B/SignalWorkflowExecution": true,
		"/a.B/GetWorkflowExecutionHistory": false, "/a.B/PollActivityTaskQueue": false} {
		if keeps(method) != is {
			t.Errorf("%s keeps something: %v", method, !is)
		}
	}
	for text, full := range map[string]bool{
		"could not extend file: No space left on device (SQLSTATE 53100)": true,
		"There is not enough space on the disk.":                          true, "Disk quota exceeded": true,
		"database is locked": false, "workspace left": false,
	} {
		if saysFull(text) != full {
			t.Errorf("%q is full: %v", text, !full)
		}
	}
}
