package supervise

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Main is the supervisor, which package proc runs in the role Role. It returns the exit
// status.
func Main() int {
	catchSignals()
	return superviseUnix(os.NewFile(controlFD, "control"), processTable, func(s *Spec) ([]string, error) {
		if err := setLimits(s.Limits); err != nil {
			return nil, err
		}
		return seatbeltArgv(s)
	})
}

// zombie is SZOMB in the state of a process.
const zombie = 5

// processTable returns the processes of this user.
func processTable() (all []unixProcess) {
	table, err := unix.SysctlKinfoProcSlice("kern.proc.uid", os.Getuid())
	if err != nil {
		return nil
	}
	for i := range table {
		p := &table[i]
		all = append(all, unixProcess{
			pid: int(p.Proc.P_pid), parent: int(p.Eproc.Ppid), group: int(p.Eproc.Pgid),
			started: int64(p.Proc.P_starttime.Sec)*1e6 + int64(p.Proc.P_starttime.Usec), ended: p.Proc.P_stat == zombie,
		})
	}
	return all
}

// setLimits sets the limits of each process of the command, for this process and its
// children. The limits of memory and processor time of all processes together are not
// enforced on this system.
func setLimits(l Limits) error {
	if l.FileBytes == 0 {
		l.FileBytes = 4 << 30
	}
	for _, one := range []struct {
		resource int
		value    int64
	}{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_FSIZE, l.FileBytes}, {unix.RLIMIT_NOFILE, l.Files}, {unix.RLIMIT_NPROC, l.Processes}} {
		if one.value < 0 || one.value == 0 && one.resource != unix.RLIMIT_CORE {
			continue
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(one.resource, &now); err != nil {
			return os.NewSyscallError("getrlimit", err)
		}
		limit := unix.Rlimit{Cur: min(uint64(one.value), now.Max), Max: min(uint64(one.value), now.Max)}
		if err := unix.Setrlimit(one.resource, &limit); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	return nil
}

// catchSignals keeps the signals that end or stop a program from reaching the supervisor.
// The program gets their default actions, also of those that the server ignores.
func catchSignals() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGCHLD, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
}
