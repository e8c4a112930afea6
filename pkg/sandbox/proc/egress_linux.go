package proc

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// newEgressSocketPair returns a new socket pair. The caller closes it.
func newEgressSocketPair() (*egressSocketPair, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	return &egressSocketPair{os.NewFile(uintptr(ends[0]), "listener"), os.NewFile(uintptr(ends[1]), "listener")}, nil
}

// receiveListener returns the listener. It does not wait: the supervisor sends
// it before it reports the command as started. If several have arrived, the
// last one is valid; supervisors that ended early sent the others. The caller
// closes it.
func (l *egressSocketPair) receiveListener() (*os.File, error) {
	last := -1
	for {
		oob := make([]byte, unix.CmsgSpace(4))
		n, oobn, _, _, err := unix.Recvmsg(int(l.serverEnd.Fd()), make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
		runtime.KeepAlive(l)
		if err == unix.EINTR {
			continue
		}
		if (err == unix.EAGAIN || err == nil && n == 0) && last >= 0 {
			return os.NewFile(uintptr(last), "listener"), nil
		}
		if last >= 0 {
			unix.Close(last)
		}
		if err == nil {
			last, err = singleDescriptor(oob[:oobn])
		}
		if err != nil {
			return nil, os.NewSyscallError("recvmsg", err)
		}
	}
}

// singleDescriptor returns the single descriptor in oob, the control messages
// of a received message. It is an error if there are none or several.
func singleDescriptor(oob []byte) (int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return -1, errors.Join(errors.New("not one message"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(errors.New("not one descriptor"), err)
	}
	return fds[0], nil
}
