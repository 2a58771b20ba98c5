package child

import (
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

// tie makes the end of this process the end of a child that is about to start: the child is put into a job object,
// which the system ends with its last handle. A pipe, as elsewhere, would not do: a read that waits for standard input
// blocks libraries that are loaded meanwhile and look at it. Begun is called once the child has started, and release
// when it has ended or could not start.
func tie(cmd *exec.Cmd) (begun func() error, release func(), err error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, nil, err
	}
	release = func() { _ = windows.CloseHandle(job) }
	limits := &windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		reflect.ValueOf(limits).Pointer(), uint32(reflect.TypeOf(*limits).Size()))
	runtime.KeepAlive(limits)
	if err != nil {
		release()
		return nil, nil, err
	}
	begun = func() error {
		process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false,
			uint32(cmd.Process.Pid))
		if err != nil {
			return err
		}
		defer windows.CloseHandle(process)
		return windows.AssignProcessToJobObject(job, process)
	}
	return begun, release, nil
}

// inherit hands the pipe for events to a child that is about to start, as a handle: Windows has no ExtraFiles.
func inherit(cmd *exec.Cmd, pipe *os.File) error {
	handle := pipe.Fd()
	const inherit = windows.HANDLE_FLAG_INHERIT
	err := windows.SetHandleInformation(windows.Handle(handle), inherit, inherit)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.AdditionalInheritedHandles = []syscall.Handle{syscall.Handle(handle)}
	cmd.Env = append(cmd.Environ(), eventsVariable+"="+strconv.FormatUint(uint64(handle), 10))
	return err
}

// inherited opens the pipe that the parent named. Programs that this one starts do not get it: they inherit what is
// listed alone.
func inherited(at string) *os.File {
	handle, err := strconv.ParseUint(at, 10, 64)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(handle), "events")
}
