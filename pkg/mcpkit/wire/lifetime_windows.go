package wire

import (
	"context"
	"os"

	"golang.org/x/sys/windows"
)

// waitForExitReason waits until the parent process is gone and returns
// parentGone, or until ctx ends and returns "". A closed stdout is noticed at
// the next write.
func waitForExitReason(ctx context.Context, _ *os.File) string {
	parent, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(os.Getppid()))
	if err != nil {
		<-ctx.Done()
		return ""
	}
	defer windows.CloseHandle(parent)
	wake, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		<-ctx.Done()
		return ""
	}
	defer windows.CloseHandle(wake)
	signalled := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(signalled)
		if err := windows.SetEvent(wake); err != nil {
			return // the process ends without our help
		}
	})
	defer func() {
		if !stop() {
			<-signalled // before the handle is closed
		}
	}()
	first, err := windows.WaitForMultipleObjects([]windows.Handle{parent, wake}, false, windows.INFINITE)
	if err == nil && first == windows.WAIT_OBJECT_0 {
		return parentGone
	}
	return ""
}
