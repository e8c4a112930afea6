package state

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/windows"
)

// parentIdentity identifies the process that started this one, uniquely across
// reboots, by its id and start time. It is determined once, because the id of a
// parent that has ended may be reused.
var parentIdentity = sync.OnceValue(func() string {
	parent := os.Getppid()
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(parent))
	if err != nil { // the id alone is less unique
		return fmt.Sprint(parent)
	}
	defer windows.CloseHandle(process)
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		return fmt.Sprint(parent)
	}
	return fmt.Sprintf("%d %d", parent, created.Nanoseconds())
})
