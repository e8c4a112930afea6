package trust

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// takeReadLease takes a read lease: the system delays others who open the file for
// writing until it is closed. It has no effect for another user's file and on network
// file systems; then Recheck finds a change.
func takeReadLease(f *os.File) {
	unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK) //nolint:errcheck // see above
}

// descriptorPath returns a path to the open file f, even if another file has its name
// by now; path, if /proc is missing. It contains the host's process id, since the
// descriptors of a starting child are not final. The program finds its real path in
// /proc/self/exe.
func descriptorPath(f *os.File, path string) string {
	direct := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())
	if _, err := os.Stat(direct); err != nil {
		return path
	}
	return direct
}

// changeTime returns the time of the last change of a file or its metadata, in
// nanoseconds since 1970; 0 if it is unknown.
func changeTime(info os.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return st.Ctim.Nano()
}
