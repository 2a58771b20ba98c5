package fault

import (
	"io/fs"
	"syscall"
)

// Windows has numbers of its own for what the machine cannot do now, see winerror.h: no memory (8, 14, 1455), write
// protected (19), in use (32, 33), disk full (39, 112), quota exceeded (1295), a device's failure (1117).
func init() {
	system = append(system, fs.ErrPermission)
	for _, number := range []syscall.Errno{8, 14, 19, 32, 33, 39, 112, 1117, 1295, 1455} {
		system = append(system, number)
	}
	causeNames = append(causeNames, named{diskFull, syscall.Errno(39)}, named{diskFull, syscall.Errno(112)},
		named{quotaExceeded, syscall.Errno(1295)})
}
