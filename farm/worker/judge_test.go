package worker

import (
	"context"
	"errors"
	"testing"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/scene"
)

// TestJudge wants tasks to end for good only where no other node could do them.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		cause        error
		code         int
		spoke, alone bool
		want         outcome
	}{
		{nil, task.ExitDone, false, false, succeeded},
		{nil, task.ExitData, true, false, failed},
		{nil, task.ExitUsage, true, false, failed},
		{nil, task.ExitUsage, false, false, again}, // a crash
		{nil, task.ExitSetup, true, false, again},
		{nil, task.ExitSetup, true, true, failed},
		{nil, task.ExitRetry, true, false, again},
		{queue.ErrStalled, task.ExitRetry, true, false, again},
		{queue.ErrLost, task.ExitDone, true, false, dropped},
		{task.ErrStopped, task.ExitRetry, true, false, handedBack},
	} {
		if got := judge(c.cause, c.code, c.spoke, c.alone); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	full, spoilt := errors.New("no space left on device"), &scene.Error{Op: "read job", Err: errors.New("no kind"), Kind: spec.ErrSpec}
	for _, c := range []struct {
		cause, err error
		want       outcome
	}{{nil, full, again}, {nil, spoilt, failed}, {queue.ErrCanceled, context.Canceled, handedBack}, {queue.ErrLost, context.Canceled, dropped}} {
		if got := judgeOpen(c.cause, c.err); got != c.want {
			t.Errorf("open %v, %v: %d", c.cause, c.err, got)
		}
	}
	unset := &scene.Error{Op: "open root", Err: errors.New("no such folder"), Kind: store.ErrSetup}
	if judgeError(unset, false) != again || judgeError(unset, true) != failed || judgeError(full, true) != again {
		t.Error("errors of the store are judged wrongly")
	}
}
