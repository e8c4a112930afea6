package supervise

import (
	"fmt"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// pathCall is a system call that looks at a path without changing a file. path is the
// index of its argument, and dir that of the descriptor at which it starts.
type pathCall struct {
	number    uint32
	dir, path int
}

// addWatchRules passes the calls that look at paths to the supervisor, if the
// command is watched.
func (p *program) addWatchRules(f filterOptions) {
	if !f.watch {
		return
	}
	for _, c := range pathCalls {
		p.onCall(c.number, func(p *program) { p.returnAction(unix.SECCOMP_RET_USER_NOTIF) })
	}
}

// maxAccesses bounds the different accesses of a command that are reported.
const maxAccesses = 50_000

// accessWatcher reports the paths that a command names and the addresses that it
// connects to, each once. It sees a call before the kernel makes it. The command can
// change a path in its memory meanwhile, so a report is a help and not evidence.
type accessWatcher struct {
	send func(Report)

	mu      sync.Mutex
	buf     [unix.PathMax]byte
	seen    map[Report]struct{}
	unsent  []Report // before the command has started
	started bool
}

// newAccessWatcher returns nil for a command that is not watched.
func newAccessWatcher(s *Spec) *accessWatcher {
	if !s.Watch {
		return nil
	}
	return &accessWatcher{seen: map[Report]struct{}{}}
}

// startSending sends the reports that wait for the start of the command, and
// all later ones, with send. w may be nil.
func (w *accessWatcher) startSending(send func(Report)) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.send, w.started = send, true
	for _, r := range w.unsent {
		send(r)
	}
	w.unsent = nil
}

// reportAccess reports an access, each one once and at most maxAccesses. Before the
// command has started, the report waits. The caller holds w.mu.
func (w *accessWatcher) reportAccess(kind AccessKind, name string) {
	r := Report{Access: kind, Name: name}
	if _, known := w.seen[r]; known || len(w.seen) >= maxAccesses {
		return
	}
	w.seen[r] = struct{}{}
	if w.started {
		w.send(r)
	} else {
		w.unsent = append(w.unsent, r)
	}
}

// watchCall reports the files that the call n names and the address that it
// connects to.
func (c *callServer) watchCall(n *notification) {
	w := c.watcher
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.number == unix.SYS_CONNECT {
		if address, err := c.readMemory(n, n.args[1], int(min(n.args[2], unix.SizeofSockaddrAny))); err == nil {
			if kind, name := describeAddress(address); name != "" {
				w.reportAccess(kind, name)
			}
		}
		return
	}
	for _, p := range pathCalls {
		if int64(p.number) == int64(n.number) {
			w.reportPath(c, n, AccessRead, p.dir, p.path)
			return
		}
	}
	for i := range undoCalls {
		call := &undoCalls[i]
		if int64(call.number) != int64(n.number) || call.effect == effectAdjustOpen || call.effect == effectBind {
			continue
		}
		kind := AccessWrite
		if call.effect == effectOpen && call.flags >= 0 && n.args[call.flags]&writeOpenFlags == 0 {
			kind = AccessRead
		}
		if call.effect != effectLink {
			w.reportPath(c, n, kind, call.dir, call.path)
		}
		if call.effect == effectRename || call.effect == effectLink {
			w.reportPath(c, n, AccessWrite, call.toDir, call.to)
		}
		return
	}
}

// reportPath reports an access to a path of the caller, made absolute, with its links as
// they are. dirArg and pathArg are the indices of the call's arguments with the directory
// (-1: none) and the path. The caller of reportPath holds w.mu.
func (w *accessWatcher) reportPath(c *callServer, n *notification, kind AccessKind, dirArg, pathArg int) {
	path, err := readCallerPath(n, n.args[pathArg], w.buf[:])
	if err != nil || path == "" || isIgnoredDevice(path) {
		return
	}
	if path[0] != '/' {
		at := "/proc/" + strconv.Itoa(int(n.pid)) + "/cwd"
		if dirArg >= 0 && int32(n.args[dirArg]) != unix.AT_FDCWD {
			at = "/proc/" + strconv.Itoa(int(n.pid)) + "/fd/" + strconv.Itoa(int(int32(n.args[dirArg])))
		}
		size, err := unix.Readlink(at, w.buf[:])
		if err != nil || size == 0 || w.buf[0] != '/' {
			return
		}
		path = string(w.buf[:size]) + "/" + path
	}
	w.reportAccess(kind, filepath.Clean(path))
}

// describeAddress returns the kind and the text of a socket address: the path of a unix
// socket, or address and port. The text is "" for other addresses.
func describeAddress(b []byte) (AccessKind, string) {
	if len(b) < 8 {
		return AccessConnect, ""
	}
	port := int(b[2])<<8 | int(b[3])
	switch int(b[0]) | int(b[1])<<8 {
	case unix.AF_UNIX:
		if b[2] == 0 {
			return AccessSocket, ""
		}
		end := 2
		for end < len(b) && b[end] != 0 {
			end++
		}
		return AccessSocket, string(b[2:end])
	case unix.AF_INET:
		return AccessConnect, fmt.Sprintf("%d.%d.%d.%d:%d", b[4], b[5], b[6], b[7], port)
	case unix.AF_INET6:
		if len(b) >= 24 {
			return AccessConnect, formatIPv6(b[8:24], port)
		}
	}
	return AccessConnect, ""
}

// formatIPv6 returns an address with its port: a mapped IPv4 address as such, zeros at
// the beginning as "::". It serves instead of net/netip, whose initialization each
// command would wait for.
func formatIPv6(b []byte, port int) string {
	zeros := 0
	for zeros < 16 && b[zeros] == 0 {
		zeros++
	}
	if zeros == 10 && b[10] == 0xff && b[11] == 0xff {
		return fmt.Sprintf("%d.%d.%d.%d:%d", b[12], b[13], b[14], b[15], port)
	}
	text := ""
	for i := 0; i < 16; i += 2 {
		if i+1 < zeros {
			continue
		}
		if text != "" {
			text += ":"
		}
		text += strconv.FormatUint(uint64(b[i])<<8|uint64(b[i+1]), 16)
	}
	if zeros > 1 {
		text = "::" + text
	}
	return fmt.Sprintf("[%s]:%d", text, port)
}
