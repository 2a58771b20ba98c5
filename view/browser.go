package view

import (
	"fmt"
	"os/exec"
	"runtime"
)

// browserCommand is the program, with its arguments, that opens an address in the user's browser. No shell sees them.
func browserCommand(system, url string) []string {
	switch system {
	case "darwin":
		return []string{"open", url}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", url}
	}
	return []string{"xdg-open", url}
}

// OpenBrowser opens an address in the user's browser and does not wait for it.
func OpenBrowser(url string) error {
	argv := browserCommand(runtime.GOOS, url)
	cmd := exec.Command(argv[0], argv[1:]...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("open browser: %w", err)
	}
	go func() { _ = cmd.Wait() }() // whatever it says, the address is printed
	return nil
}
