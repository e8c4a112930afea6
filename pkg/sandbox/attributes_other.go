//go:build !linux

package sandbox

import (
	"io/fs"
	"os"
	"runtime"
)

// hasPOSIXOwners is true if files have numeric owners and groups.
const hasPOSIXOwners = runtime.GOOS != "windows" && runtime.GOOS != "plan9"

// openReadWithoutAccessTime returns fs.ErrPermission: attributes are not copied on this
// system.
func (d *writableDir) openReadWithoutAccessTime(string) (*os.File, error) {
	return nil, fs.ErrPermission
}

// copyAttributes gives the new file to the mode of from and, on systems with numeric
// owners, its owner and group. It copies no extended attributes. why is "" if all were
// set. Otherwise it says what could not be set, and the new file must not replace the old
// one.
func copyAttributes(from, to *os.File, old Stat) (why string, err error) {
	info, err := to.Stat()
	if err != nil {
		return "", err
	}
	// A new file gets its directory's group. If the owner or group cannot be set, the
	// old mode would give that group rights that it did not have.
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

// hasCapabilities returns false: these systems have no file capabilities.
func hasCapabilities(*os.File) bool { return false }
