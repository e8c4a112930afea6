//go:build linux && (amd64 || arm64)

package supervise

import "golang.org/x/sys/unix"

// systemVCalls lists the System V IPC calls. They are refused at L1, which has no
// IPC namespace: segments outlive the command, no memory limit counts them,
// and the segments of the user's other processes are readable.
var systemVCalls = [...]uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
}

// messageQueueCalls lists the calls for POSIX message queues that are refused
// at L1 for the same reason as systemVCalls. Landlock restricts only the
// opening of a queue, not its creation and removal. The other calls need a
// descriptor of mq_open(2).
var messageQueueCalls = [...]uint32{unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK}
