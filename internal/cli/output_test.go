package cli

import (
	"bytes"
	"errors"
	"fmt"
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
