package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// runProbe reads the probeTargets from standard input, prints the checks as JSON, and
// returns the exit code.
func runProbe() int {
	p := &prober{}
	if err := json.NewDecoder(os.Stdin).Decode(&p.probeTargets); err != nil {
		fmt.Println(err)
		return 2
	}
	p.checkFiles()
	p.checkNetwork()
	p.checkProcesses()
	p.checkKernel()
	p.leaveProcessRunning()
	if err := json.NewEncoder(os.Stdout).Encode(p.checks); err != nil {
		return 2
	}
	return 0
}

// runProbeRole is the main function of this program in a role other than supervisor. It returns
// the exit code.
func runProbeRole(role string) int {
	switch role {
	case probeRole:
		return runProbe()
	case portableProbeRole:
		return runPortableProbe()
	}
	fmt.Fprintf(os.Stderr, "%s: role %q is unknown\n", os.Args[0], role)
	return 2
}

// isL2 reports whether the probe runs at L2.
func (p *prober) isL2() bool { return p.Level == L2 }

// checkFiles tries accesses to files inside and outside the roots.
func (p *prober) checkFiles() {
	inside := filepath.Join(p.Root, "file")
	p.recordAllowed("write in roots", os.WriteFile(inside, []byte("x"), 0o600))
	temp, err := os.CreateTemp("", "probe")
	if p.recordAllowed("write in TMPDIR", err); err == nil {
		temp.Close()
	}
	_, err = os.ReadFile("/usr/bin/env")
	p.recordAllowed("read programs", err)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if p.recordAllowed("use /dev/null", err); err == nil {
		null.Close()
	}

	p.recordBlocked("write outside", true, os.WriteFile(filepath.Join(p.OutsideDir, p.Mark), []byte("x"), 0o600))
	p.recordBlocked("make a directory outside", true, os.Mkdir(filepath.Join(p.OutsideDir, p.Mark), 0o700))
	p.recordBlocked("move out of a root", true, os.Rename(inside, filepath.Join(p.OutsideDir, p.Mark)))
	p.recordBlocked("link out of a root", true, os.Link(inside, filepath.Join(p.OutsideDir, p.Mark)))
	_, err = os.ReadFile(filepath.Join(p.SecretDir, "key"))
	p.recordBlocked("read secrets", true, err)
	p.recordBlocked("write to /proc/sys", true, openForWrite("/proc/sys/kernel/core_pattern"))
	p.chmodOutside()
	p.recordBlocked("open a disk", true, openDisk())
	p.recordBlocked("inherit file descriptors", true, useInheritedDescriptor())
}

// openForWrite opens a file for writing and closes it again. It returns the
// error, nil if that is possible.
func openForWrite(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	return err
}

// chmodOutside tries to set a file outside the roots to the mode it already
// has.
func (p *prober) chmodOutside() {
	const name = "change modes outside"
	if p.OwnedOutside == "" {
		p.checks = append(p.checks, Check{Name: name, State: NotAvailable, Needed: p.isL2(), Why: "nothing outside belongs to this user"})
		return
	}
	info, err := os.Stat(p.OwnedOutside)
	if err == nil {
		mode := info.Sys().(*syscall.Stat_t).Mode // including the special bits
		err = unix.Chmod(p.OwnedOutside, mode&0o7777)
	}
	p.recordBlocked(name, p.isL2(), err)
}

// openDisk tries to open a block device for reading. It returns nil if one can
// be opened.
func openDisk() error {
	names, _ := filepath.Glob("/sys/class/block/*")
	for _, name := range names {
		if f, err := os.Open(filepath.Join("/dev", filepath.Base(name))); err == nil {
			f.Close()
			return nil
		}
	}
	return errors.New("none can be opened")
}

// useInheritedDescriptor returns nil if a command would inherit a descriptor
// from 3 on, else an error.
func useInheritedDescriptor() error {
	var limit unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	for fd := 3; fd < int(min(limit.Cur, 4096)); fd++ {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			return nil
		}
	}
	return errors.New("there is none")
}

// checkNetwork tries to reach the server's listeners, and to open kinds of
// sockets.
func (p *prober) checkNetwork() {
	off := !p.Network
	for _, kind := range []struct {
		name, network, address string
		promised               bool
	}{
		{"connect by TCP", "tcp", p.TCP, off},
		{"connect to an abstract socket", "unix", p.AbstractName, true},
		{"connect to a named socket", "unix", p.NamedSocket, true},
	} {
		if kind.address == "" {
			p.checks = append(p.checks, Check{Name: kind.name, State: NotAvailable, Needed: kind.promised, Why: "the name would be too long"})
			continue
		}
		p.recordBlocked(kind.name, kind.promised, dial(kind.network, kind.address))
	}
	p.recordBlocked("send by UDP", off, p.sendUDP())
	for _, kind := range []struct {
		name                   string
		family, kind, protocol int
	}{
		{"open a raw socket", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
		{"open a packet socket", unix.AF_PACKET, unix.SOCK_RAW, 0},
		{"open a vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0},
		{"open a kernel crypto socket", unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
	} {
		fd, err := unix.Socket(kind.family, kind.kind, kind.protocol)
		if err == nil {
			unix.Close(fd)
		}
		p.recordBlocked(kind.name, true, err)
	}
	if p.isL2() {
		p.recordAllowed(useLoopback, connectToOwnListener("tcp", "127.0.0.1:0"))
		if !p.NoUnix {
			p.recordAllowed(useNamedSockets, connectToOwnListener("unix", filepath.Join(os.TempDir(), "s")))
		}
		if p.RenamedSocket != "" {
			p.recordBlocked("connect to a socket outside", true, dial("unix", p.RenamedSocket))
		}
		names, err := os.ReadDir("/sys/class/net")
		if err == nil && len(names) == 0 {
			err = errors.New("none is listed")
		}
		p.recordBlocked("see network devices", true, err)
	}
}

// sendUDP sends to the server's socket. In a network namespace without that
// socket, a later write returns the error.
func (p *prober) sendUDP() error {
	conn, err := net.Dial("udp", p.UDP)
	if err != nil {
		return err
	}
	defer conn.Close()
	for range 3 {
		if _, err = conn.Write([]byte("x")); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// connectToOwnListener starts a listener and connects to it. It returns the
// error, nil if that is possible.
func connectToOwnListener(network, address string) error {
	listener, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	defer listener.Close()
	conn, err := net.Dial(network, listener.Addr().String())
	if err != nil {
		return err
	}
	return conn.Close()
}

// checkProcesses tries to read, signal and trace the server and the supervisor.
func (p *prober) checkProcesses() {
	for _, other := range []struct {
		name string
		pid  int
	}{{"the server", p.ServerPID}, {"the supervisor", os.Getppid()}} {
		pid := strconv.Itoa(other.pid)
		if p.isL2() && other.pid == p.ServerPID {
			// Inside, this number belongs to another process or to none.
			_, err := os.Stat("/proc/" + pid + "/stat")
			if comm, _ := os.ReadFile("/proc/" + pid + "/status"); err == nil && strings.Contains(string(comm), "NSpid:\t"+pid+"\t") {
				p.recordBlocked("see "+other.name, true, nil)
			} else {
				p.recordBlocked("see "+other.name, true, errors.New("it has no process id here"))
			}
			continue
		}
		_, err := os.ReadFile("/proc/" + pid + "/environ")
		p.recordBlocked("read the environment of "+other.name, true, err)
		_, err = os.Readlink("/proc/" + pid + "/fd/0")
		p.recordBlocked("follow the descriptors of "+other.name, true, err)
		promised := p.isL2() || supervise.LandlockABI() >= supervise.SignalsABI
		p.recordBlocked("signal "+other.name, promised && !(p.isL2() && other.pid == 1), unix.Kill(other.pid, unix.SIGCONT))
		p.recordBlocked("trace "+other.name, true, rawSyscall(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(other.pid), 0, 0))
		var word uintptr
		local := unix.Iovec{Base: (*byte)(unsafe.Pointer(&word)), Len: 8}
		_, err = unix.ProcessVMReadv(other.pid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
		p.recordBlocked("read the memory of "+other.name, true, err)
	}
}

// leaveProcessRunning starts a process in its own session and does not wait for
// it.
func (p *prober) leaveProcessRunning() {
	_, err := os.StartProcess("/usr/bin/env", []string{"env", "sleep", "1000"}, &os.ProcAttr{
		Env: []string{supervise.MarkName + "=" + p.Mark, "PATH=" + os.Getenv("PATH")}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	p.recordAllowed("start processes", err)
}

// rawSyscall makes a system call with four arguments, and returns its errno,
// nil on success.
func rawSyscall(number, a, b, c, d uintptr) error {
	if _, _, errno := unix.Syscall6(number, a, b, c, d, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
