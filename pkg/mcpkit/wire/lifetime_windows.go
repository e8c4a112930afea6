package wire

import (
	"context"
	"os"

	"golang.org/x/sys/windows"
)

// A parentProcess is the process that was the parent at openParent.
type parentProcess struct{ handle windows.Handle } // 0 when it cannot be opened

// openParent returns the current parent process, without a handle if it cannot be
// opened. The caller closes it.
func openParent() parentProcess {
	handle, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(os.Getppid()))
	if err != nil {
		return parentProcess{}
	}
	return parentProcess{handle}
}

// close closes the handle of the process.
func (p parentProcess) close() {
	if p.handle != 0 {
		windows.CloseHandle(p.handle) //nolint:errcheck // opened for waiting only
	}
}

// waitForExitReason waits until the parent process is gone and returns
// parentEnded, or until ctx ends and returns "". A closed stdout is noticed at
// the next write.
func waitForExitReason(ctx context.Context, _ *os.File, parent parentProcess) string {
	if parent.handle == 0 {
		<-ctx.Done()
		return ""
	}
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
	first, err := windows.WaitForMultipleObjects([]windows.Handle{parent.handle, wake}, false, windows.INFINITE)
	if err == nil && first == windows.WAIT_OBJECT_0 {
		return parentEnded
	}
	return ""
}
