package proc

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// checkKernel tries the system calls that the filter must refuse, each with
// arguments that would do nothing, and checks the kernel's status of this
// process.
func (p *prober) checkKernel() {
	for _, c := range []struct {
		name    string
		want    unix.Errno
		number  uintptr
		a, b, c uintptr
	}{
		{"create a user namespace", unix.EPERM, unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0},
		{"clone into a namespace", unix.EPERM, unix.SYS_CLONE, unix.CLONE_NEWUSER | unix.CLONE_THREAD, 0, 0},
		{"enter a namespace", unix.EPERM, unix.SYS_SETNS, ^uintptr(0), 0, 0},
		{"mount", unix.EPERM, unix.SYS_MOUNT, 0, 0, 0},
		{"unmount", unix.EPERM, unix.SYS_UMOUNT2, 0, 0, 0},
		{"change the root", unix.EPERM, unix.SYS_CHROOT, 0, 0, 0},
		{"open a mount", unix.EPERM, unix.SYS_OPEN_TREE, ^uintptr(0), 0, 0},
		{"trace processes", unix.EPERM, unix.SYS_PTRACE, unix.PTRACE_CONT, 0, 0},
		{"take descriptors", unix.EPERM, unix.SYS_PIDFD_GETFD, ^uintptr(0), 0, 0},
		{"load BPF", unix.EPERM, unix.SYS_BPF, 0, 0, 0},
		{"open performance counters", unix.EPERM, unix.SYS_PERF_EVENT_OPEN, 0, 0, 0},
		{"handle page faults", unix.EPERM, unix.SYS_USERFAULTFD, ^uintptr(0), 0, 0},
		{"use keys", unix.EPERM, unix.SYS_KEYCTL, ^uintptr(0), 0, 0},
		{"open by handle", unix.EPERM, unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(0), 0, 0},
		{"load modules", unix.EPERM, unix.SYS_INIT_MODULE, 0, 0, 0},
		{"use io_uring", unix.ENOSYS, unix.SYS_IO_URING_SETUP, 0, 0, 0},
		{"use clone3", unix.ENOSYS, unix.SYS_CLONE3, 0, 0, 0},
		{"set a setuid bit", unix.EPERM, unix.SYS_FCHMOD, ^uintptr(0), unix.S_ISUID, 0},
		{"set attributes of files", unix.EOPNOTSUPP, unix.SYS_FSETXATTR, ^uintptr(0), 0, 0},
		{"type into a terminal", unix.EPERM, unix.SYS_IOCTL, 0, unix.TIOCSTI, 0},
	} {
		err := rawSyscall(c.number, c.a, c.b, c.c, 0)
		if err != nil && !errors.Is(err, c.want) {
			// Another error comes from the kernel itself, so the filter let
			// the call pass.
			p.checks = append(p.checks, Check{Name: c.name, State: NotEnforced, Needed: true, Why: "not filtered: " + err.Error()})
			continue
		}
		p.recordBlocked(c.name, true, err)
	}
	if supervise.AuditArch == unix.AUDIT_ARCH_X86_64 {
		p.recordBlocked("use the x32 calls", true, rawSyscall(supervise.X32Bit|unix.SYS_GETPID, 0, 0, 0, 0))
	}
	if !p.isL2() {
		err := rawSyscall(unix.SYS_SHMGET, 0, 0, 0, 0) // of size 0
		if !errors.Is(err, unix.ENOSYS) {
			err = nil
		}
		p.recordBlocked("use System V memory", true, err)
	}
	p.checkStatus()
}

// checkStatus checks the attributes of this process in /proc/self/status:
// NoNewPrivs, seccomp, and no capabilities.
func (p *prober) checkStatus() {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		p.recordAllowed("read /proc", err)
		return
	}
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		values[name] = strings.TrimSpace(value)
	}
	must := map[string]string{"NoNewPrivs": "1", "Seccomp": "2"}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		must[set] = "0000000000000000"
	}
	if p.isL2() || os.Geteuid() == 0 { // a plain user at L1 cannot empty it, and cannot use it
		must["CapBnd"] = "0000000000000000"
	}
	wrong := []string{}
	for name, value := range must {
		if values[name] != value {
			wrong = append(wrong, fmt.Sprintf("%s is %s", name, values[name]))
		}
	}
	if err = errors.New("none, and none can be gained"); len(wrong) > 0 {
		p.checks = append(p.checks, Check{Name: "have capabilities", State: NotEnforced, Needed: true, Why: strings.Join(wrong, ", ")})
		return
	}
	p.recordBlocked("have capabilities", true, err)
}
