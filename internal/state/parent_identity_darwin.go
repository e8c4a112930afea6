package state

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// parentIdentity identifies the process that started this one, uniquely across
// reboots, by its id and start time. It is determined once, because an orphan
// gets another parent.
var parentIdentity = sync.OnceValue(func() string {
	parent := os.Getppid()
	info, err := unix.SysctlKinfoProc("kern.proc.pid", parent)
	if err != nil { // the id alone is less unique
		return fmt.Sprint(parent)
	}
	started := info.Proc.P_starttime
	return fmt.Sprintf("%d %d.%06d", parent, started.Sec, started.Usec)
})
