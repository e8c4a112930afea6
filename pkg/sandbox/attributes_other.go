//go:build !linux

package sandbox

import (
	"io/fs"
	"os"
	"runtime"
)

// posixOwner: files have a numeric owner.
const posixOwner = runtime.GOOS != "windows" && runtime.GOOS != "plan9"

func (d *folder) openUnread(string) (*os.File, error) { return nil, fs.ErrPermission }

// copyAttributes gives a new file the mode and, where it has a number, the
// owner of an old one. Extended attributes are not kept on this system.
func copyAttributes(from, to *os.File, old Stat) (dropped []string, why string, err error) {
	info, err := to.Stat()
	if err != nil {
		return nil, "", err
	}
	if posixOwner && old.UID != statOfInfo(info).UID {
		if err := to.Chown(int(old.UID), -1); err != nil {
			return nil, "its owner cannot be given to a new file", nil
		}
	}
	if err := to.Chmod(old.Mode.Perm()); err != nil && runtime.GOOS != "windows" {
		return nil, "its mode cannot be given to a new file", nil
	}
	for bit, name := range map[fs.FileMode]string{fs.ModeSetuid: "setuid", fs.ModeSetgid: "setgid"} {
		if old.Mode&bit != 0 {
			dropped = append(dropped, name)
		}
	}
	return dropped, "", nil
}
