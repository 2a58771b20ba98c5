package cli

import (
	"time"
)

// AbortAfter is how long after the first signal a Ctrl-C aborts: sooner, it is
// the same wish delivered twice, to the process and to its group.
const AbortAfter = 500 * time.Millisecond

// Always is a then of interruptible that is the same at any time.
func Always(text string) func() string { return func() string { return text } }

// Both calls two functions one after the other, the second first.
func Both(f, g func()) func() {
	return func() {
		g()
		f()
	}
}
