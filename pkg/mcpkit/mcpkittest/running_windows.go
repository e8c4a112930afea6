package mcpkittest

import "golang.org/x/sys/windows"

// IsRunning reports whether the process exists and has not exited.
func IsRunning(pid int) bool {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(h) //nolint:errcheck // opened for waiting only
	event, err := windows.WaitForSingleObject(h, 0)
	return err != nil || event != windows.WAIT_OBJECT_0
}
