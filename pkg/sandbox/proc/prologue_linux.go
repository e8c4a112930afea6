package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// readReport reads the file that the prologue or the command wrote to temp, the
// private temporary directory. It returns nil unless that is a regular file of
// 1 to maxReport bytes, with no link in its path. It uses system calls, since
// os.File prepares for waiting, which takes several times as long as this read.
func readReport(temp string) []byte {
	fd, err := unix.Openat2(unix.AT_FDCWD, filepath.Join(temp, reportName), &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if syscall.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG || st.Size <= 0 || st.Size > maxReport {
		return nil
	}
	report := make([]byte, st.Size)
	n := 0
	for n < len(report) {
		m, err := syscall.Read(fd, report[n:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || m == 0 {
			return nil // somebody has truncated it meanwhile
		}
		n += m
	}
	return report
}

// sealedFile returns an open memfd whose content is text, sealed so that no
// process can change it. The caller closes it.
func sealedFile(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("prologue", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "prologue")
	if _, err = f.WriteString(text); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// prologuePath returns the path at which bash finds the prologue, its descriptor fd.
func prologuePath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
