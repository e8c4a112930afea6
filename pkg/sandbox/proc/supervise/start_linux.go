package supervise

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Self is this very program, also when its file was replaced meanwhile.
const Self = "/proc/self/exe"

func init() {
	if len(os.Args) >= 3 && os.Args[1] == RoleArg && os.Args[2] == Role {
		// Not os.Exit, with which a program built with -race sleeps a second.
		syscall.Exit(supervise())
	}
}

// takeFiles is the other end of pass in package proc. It returns what came with
// the files, too, and no files at the end of the socket.
func takeFiles() (text []byte, files []uintptr, err error) {
	text, oob := make([]byte, 16<<10), make([]byte, unix.CmsgSpace(4*(MaxFiles+MaxUndoFiles)))
	n, oobn, _, _, err := unix.Recvmsg(controlFD, text, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return nil, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return nil, nil, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, nil, err
		}
		for _, fd := range fds {
			files = append(files, uintptr(fd))
		}
	}
	return text[:n], files, nil
}
