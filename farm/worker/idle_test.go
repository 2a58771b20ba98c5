package worker

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"vksplat/farm/queue"
)

// TestIdleIsSaidOnce has all that claim for a worker be told that it may not: that is one line, and another one the next time.
func TestIdleIsSaidOnce(t *testing.T) {
	var log bytes.Buffer
	n := &node{Options: Options{Node: "gpu1", Log: slog.New(slog.NewTextHandler(&log, nil))}}
	says := func(want int) {
		t.Helper()
		if got := strings.Count(log.String(), "no task is claimed"); got != want {
			t.Errorf("said %d times, want %d: %s", got, want, log.String())
		}
	}
	n.idles(queue.ErrDrained)
	n.idles(queue.ErrDrained)
	says(1)
	n.idles(fmt.Errorf("%w: three tasks failed", queue.ErrQuarantined))
	says(2)
	n.idles(nil)
	n.idles(nil)
	says(2)
	n.idles(queue.ErrDrained)
	says(3)
}
