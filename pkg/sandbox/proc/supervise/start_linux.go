package supervise

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Self is the path of the running program, even if its file was replaced.
const Self = "/proc/self/exe"

// init runs the supervisor instead of the program if the arguments ask for it. It is an
// init function so that the supervisor starts before the other packages of the program
// are initialized.
func init() {
	if len(os.Args) >= 3 && os.Args[1] == RoleArg && os.Args[2] == Role {
		// os.Exit sleeps one second in a program built with -race.
		syscall.Exit(supervise())
	}
}

// receiveFiles receives the descriptors sent by pass in package proc, and the
// text sent with them. At the end of the socket it returns no files and no
// error.
func receiveFiles() (text []byte, files []uintptr, err error) {
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
