package child

import (
	"os"

	"golang.org/x/sys/windows"
)

// stop asks a process of this program to save and stop, by a Ctrl-Break. Without a console there is no way to ask it:
// its checkpoints are whole.
func stop(p *os.Process) error {
	if windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.Pid)) == nil {
		return nil
	}
	return p.Kill()
}
