package supervise

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// changesLimitsOrScheduling reports whether a call changes the limits or the scheduling of
// the process that it names.
func changesLimitsOrScheduling(n *notification) bool {
	switch n.number {
	case unix.SYS_PRLIMIT64, unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET,
		unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR:
		return true
	}
	return false
}

// checkLimitsTarget returns the error of a call of changesLimitsOrScheduling that must not be
// made: EPERM if it names this process, one of its threads or its group, and
// ESRCH if it names no process. It returns 0 for a call that the kernel may
// make: the name is in a register, which the command cannot change afterwards.
func checkLimitsTarget(n *notification) unix.Errno {
	which, who := uint32(unix.PRIO_PROCESS), int(int32(n.args[0]))
	switch n.number {
	case unix.SYS_SETPRIORITY:
		which, who = uint32(n.args[0]), int(int32(n.args[1]))
	case unix.SYS_IOPRIO_SET:
		which, who = uint32(n.args[0])-ioprioProcess, int(int32(n.args[1]))
	}
	if which == unix.PRIO_PGRP {
		if who == unix.Getpgrp() {
			return unix.EPERM
		}
		return 0
	}
	name := strconv.Itoa(who)
	if unix.Access("/proc/"+name, unix.F_OK) != nil {
		return unix.ESRCH
	}
	if unix.Access("/proc/self/task/"+name, unix.F_OK) != unix.ENOENT {
		return unix.EPERM
	}
	return 0
}
