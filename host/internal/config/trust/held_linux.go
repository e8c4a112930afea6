package trust

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lease has the system keep others from opening the file for writing until it
// is closed. It is refused for another user's file and by network file
// systems; then Again finds a change.
func lease(f *os.File) {
	unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK) //nolint:errcheck // see above
}

// byDescriptor is a path that leads to the open file, whatever its name leads
// to. It goes by the host's process id: the descriptors of a child about to be
// are being arranged. The program finds its real path in /proc/self/exe.
func byDescriptor(f *os.File, path string) string {
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
