//go:build !linux

package sandbox

import (
	"io/fs"
	"os"
	"runtime"
)

// hasPOSIXOwners: files have a numeric owner.
const hasPOSIXOwners = runtime.GOOS != "windows" && runtime.GOOS != "plan9"

func (d *parentDir) openReadWithoutAccessTime(string) (*os.File, error) { return nil, fs.ErrPermission }

// copyAttributes gives a new file the mode and, where they have numbers, the
// owner and group of an old one. Extended attributes are not kept on this system.
func copyAttributes(from, to *os.File, old Stat) (why string, err error) {
	info, err := to.Stat()
	if err != nil {
		return "", err
	}
	// A new file gets its directory's group. With the old mode, that group would
	// get the rights that another group had.
	if made := statOfInfo(info); hasPOSIXOwners && (old.UID != made.UID || old.GID != made.GID) {
		if err := to.Chown(int(old.UID), int(old.GID)); err != nil {
			return "a new file cannot get its owner and group", nil
		}
	}
	if err := to.Chmod(old.Mode.Perm()); err != nil && runtime.GOOS != "windows" {
		return "a new file cannot get its mode", nil
	}
	return "", nil
}

// hasCapabilities: files have none here.
func hasCapabilities(*os.File) bool { return false }
