//go:build !linux && !darwin && !windows

package state

import (
	"fmt"
	"os"
	"sync"
)

// parentProcess identifies the process that started this one, by its id alone:
// this system tells no start time that can be read without cgo. It is found
// out once, since an orphan gets another parent.
var parentProcess = sync.OnceValue(func() string { return fmt.Sprint(os.Getppid()) })
