package upstream

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a job object. When its last handle is closed, also by the end of the host,
// all its processes end.
type group struct{ job windows.Handle }

// groupAttributes returns the attributes for a process in its own group.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// newGroup returns a job object with a started process. All processes of the job end when
// the host ends. After an error there is no job.
func newGroup(p *os.Process) (group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return group{}, fmt.Errorf("cannot make a job object: %w", err)
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
		},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		err = assign(job, p.Pid)
	}
	if err != nil {
		windows.CloseHandle(job) //nolint:errcheck // it was not used
		return group{}, fmt.Errorf("cannot put the process into a job object: %w", err)
	}
	return group{job}, nil
}

// assign adds a process to a job object.
func assign(job windows.Handle, pid int) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process) //nolint:errcheck // only used for the assignment
	return windows.AssignProcessToJobObject(job, process)
}

// terminate does the same as kill: a console program cannot be asked to end from
// outside.
func (g group) terminate() { g.kill() }

// kill ends all processes of the job.
func (g group) kill() {
	if g.job != 0 {
		windows.TerminateJobObject(g.job, 1) //nolint:errcheck // it fails if no process is left
	}
}

// release closes the handle of the job.
func (g group) release() {
	if g.job != 0 {
		windows.CloseHandle(g.job) //nolint:errcheck // the processes have ended
	}
}

// killGroup does nothing: job objects end with the host.
func killGroup(int) {}

// detachedAttributes returns the attributes for a process that Ctrl-C does not reach.
func detachedAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}
