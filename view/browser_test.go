package view

import (
	"slices"
	"testing"
)

// TestBrowserCommand wants the address to be one argument, whatever is in it.
func TestBrowserCommand(t *testing.T) {
	const url = "http://127.0.0.1:1/?token=$(id);&a b"
	for system, program := range map[string]string{"linux": "xdg-open", "freebsd": "xdg-open", "darwin": "open",
		"windows": "rundll32"} {
		argv := browserCommand(system, url)
		if argv[0] != program || argv[len(argv)-1] != url || slices.Contains(argv[:len(argv)-1], url) {
			t.Errorf("%s: %q", system, argv)
		}
	}
}
