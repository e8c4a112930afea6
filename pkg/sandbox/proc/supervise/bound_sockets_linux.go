package supervise

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Numbers of linux/sock_diag.h and linux/unix_diag.h.
const (
	sockDiagByFamily = 20
	udiagShowVFS     = 2       // UDIAG_SHOW_VFS
	unixDiagVFS      = 1       // UNIX_DIAG_VFS
	listening        = 1 << 10 // of TCP_LISTEN
	diagRequestBytes = 24      // struct unix_diag_req
	diagReplyBytes   = 16      // struct unix_diag_msg
)

// boundSocket is a listening unix socket that is bound to a file.
type boundSocket struct {
	socket uint32 // number of the socket itself, as in /proc/PID/fd
	ino    uint32 // low half of the file's number
	dev    uint32 // of the file system, as the kernel encodes it
}

// isBoundByCommand reports whether a process of the command listens on the socket file
// that is open as descriptor target; file is its stat. In its own network namespace,
// all sockets are the command's. Otherwise one of its processes must have the socket
// open. It returns false if the sockets cannot be listed.
func (c *callServer) isBoundByCommand(target int, file *unix.Stat_t) bool {
	all, err := boundSockets()
	if err != nil {
		return false
	}
	for _, s := range all {
		if s.ino == uint32(file.Ino) && isOnFileSystem(s.dev, target, file) && (!c.network || isOpenInCommand(s.socket)) {
			return true
		}
	}
	return false
}

// isOnFileSystem reports whether the file open as descriptor target, with the
// stat file, is on the file system dev, a device number in the kernel's own
// encoding. stat(2) shows other numbers for the subvolumes of some file
// systems, so the number of its mount counts as well.
func isOnFileSystem(dev uint32, target int, file *unix.Stat_t) bool {
	if dev == unix.Major(uint64(file.Dev))<<20|unix.Minor(uint64(file.Dev)) {
		return true
	}
	fdinfo, _ := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(target))
	_, rest, ok := strings.Cut(string(fdinfo), "mnt_id:")
	if !ok {
		return false
	}
	mount, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // id, parent, major:minor, …
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == mount {
			return fields[2] == fmt.Sprintf("%d:%d", dev>>20, dev&(1<<20-1))
		}
	}
	return false
}

// isOpenInCommand reports whether a process of this pid namespace has a socket open.
func isOpenInCommand(socket uint32) bool {
	want := fmt.Sprintf("socket:[%d]", socket)
	pids, _ := readProcDir("/proc")
	pids = filterNumbers(pids)
	for _, dir := range descriptorTables(pids) {
		names, _ := readProcDir(dir)
		for _, name := range names {
			if to, err := os.Readlink(filepath.Join(dir, name)); err == nil && to == want {
				return true
			}
		}
	}
	return false
}

// filterNumbers returns the names that are decimal numbers, such as the processes in
// /proc.
func filterNumbers(names []string) (numbers []string) {
	for _, name := range names {
		if _, err := strconv.Atoi(name); err == nil {
			numbers = append(numbers, name)
		}
	}
	return numbers
}

// boundSockets lists the listening unix sockets of this network namespace that
// are bound to files, whatever their names were or are (sock_diag(7)). It
// returns errDiag for an answer that it cannot parse.
func boundSockets() (all []boundSocket, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	request := make([]byte, unix.SizeofNlMsghdr+diagRequestBytes)
	order := binary.NativeEndian
	order.PutUint32(request[0:], uint32(len(request)))
	order.PutUint16(request[4:], sockDiagByFamily)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	body := request[unix.SizeofNlMsghdr:]
	body[0] = unix.AF_UNIX
	order.PutUint32(body[4:], listening)
	order.PutUint32(body[12:], udiagShowVFS)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	buffer := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err == unix.EINTR {
			continue
		} else if err != nil {
			return nil, err
		}
		done, err := appendBoundSockets(&all, buffer[:n])
		if done || err != nil {
			return all, err
		}
	}
}

// errDiag means that the kernel's answer about sockets cannot be parsed.
var errDiag = errors.New("malformed answer of sock_diag")

// appendBoundSockets adds the sockets in the messages of an answer. done is true after
// the last one.
func appendBoundSockets(all *[]boundSocket, messages []byte) (done bool, err error) {
	order := binary.NativeEndian
	for len(messages) >= unix.SizeofNlMsghdr {
		size := int(order.Uint32(messages))
		if size < unix.SizeofNlMsghdr || size > len(messages) {
			return false, errDiag
		}
		body := messages[unix.SizeofNlMsghdr:size]
		switch kind := order.Uint16(messages[4:]); {
		case kind == unix.NLMSG_DONE:
			return true, nil
		case kind != sockDiagByFamily || len(body) < diagReplyBytes:
			return false, errDiag // NLMSG_ERROR too
		}
		s := boundSocket{socket: order.Uint32(body[4:])}
		for attributes := body[diagReplyBytes:]; len(attributes) >= unix.SizeofRtAttr; {
			length := int(order.Uint16(attributes))
			if length < unix.SizeofRtAttr || length > len(attributes) {
				return false, errDiag
			}
			if order.Uint16(attributes[2:]) == unixDiagVFS && length >= unix.SizeofRtAttr+8 {
				s.ino, s.dev = order.Uint32(attributes[4:]), order.Uint32(attributes[8:])
				*all = append(*all, s)
			}
			attributes = attributes[min(len(attributes), roundUpTo4(length)):]
		}
		messages = messages[min(len(messages), roundUpTo4(size)):]
	}
	return false, nil
}

// roundUpTo4 rounds n up to a multiple of 4, as netlink attributes are aligned.
func roundUpTo4(n int) int { return (n + 3) &^ 3 }
