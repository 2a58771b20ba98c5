package remedy

import (
	"io/fs"
	"syscall"
)

// Windows has numbers of its own for what the machine cannot do now, see
// winerror.h: no memory (8, 14, 1455), write protected (19), in use (32, 33), disk
// full (39, 112), a device's failure (1117).
func init() {
	retryCauses = append(retryCauses, fs.ErrPermission)
	for _, number := range []syscall.Errno{8, 14, 19, 32, 33, 39, 112, 1117, 1455} {
		retryCauses = append(retryCauses, number)
	}
}
