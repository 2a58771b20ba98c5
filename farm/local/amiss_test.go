package local

import (
	"context"
	"fmt"
	"testing"

	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/fault"
)

// TestStoreAmiss tries a task again that failed for what is in the store: once that is put right, it succeeds.
func TestStoreAmiss(t *testing.T) {
	for _, why := range []error{store.ErrDamaged, store.ErrForeign} {
		r := newRig(t, chain)
		r.do = func(_ context.Context, _ task.Options, name string) error {
			if name != "b" {
				return nil
			}
			return &fault.Error{Op: "fetch input", Err: fmt.Errorf("a: %w", why), Kind: fault.ErrData}
		}
		s, err := r.run(t.Context())
		r.want(s, err, "a done, b failed, c skipped", "a", "b")
		r.do = nil
		s, err = r.run(t.Context())
		r.want(s, err, "a done, b done, c done", "b", "c")
	}
}
