//go:build !linux && !darwin && !windows

package state

import (
	"fmt"
	"os"
	"sync"
)

// parentIdentity identifies the process that started this one by its id only:
// this system has no start time that can be read without cgo. It is determined
// once, because an orphan gets another parent.
var parentIdentity = sync.OnceValue(func() string { return fmt.Sprint(os.Getppid()) })
