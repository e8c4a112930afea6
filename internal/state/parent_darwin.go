package state

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// parentProcess identifies the process that started this one, among those of
// all boots: by its id and the time of its start. It is found out once, since
// an orphan gets another parent.
var parentProcess = sync.OnceValue(func() string {
	parent := os.Getppid()
	info, err := unix.SysctlKinfoProc("kern.proc.pid", parent)
	if err != nil { // the id alone tells less apart
		return fmt.Sprint(parent)
	}
	started := info.Proc.P_starttime
	return fmt.Sprintf("%d %d.%06d", parent, started.Sec, started.Usec)
})
