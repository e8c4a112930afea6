package state

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/windows"
)

// parentProcess identifies the process that started this one, among those of
// all boots: by its id and the time of its start. It is found out once, since
// the id of a parent that has ended may be given to another process.
var parentProcess = sync.OnceValue(func() string {
	parent := os.Getppid()
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(parent))
	if err != nil { // the id alone tells less apart
		return fmt.Sprint(parent)
	}
	defer windows.CloseHandle(process)
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		return fmt.Sprint(parent)
	}
	return fmt.Sprintf("%d %d", parent, created.Nanoseconds())
})
