//go:build darwin || freebsd

package control

import "golang.org/x/sys/unix"

// peerOfDescriptor returns the user id of the process at the other end of a socket; see
// unix(4).
func peerOfDescriptor(fd int) (uid int, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
