package sandbox

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
)

// Homes returns the home directories whose credential stores belong to this user:
// HOME, the directory in the user database, and for root the home of the user who
// called sudo. The paths are absolute and clean; links in them are not resolved. HOME
// alone is not enough, because a program can be started without it or with another
// user's.
func Homes(getenv func(string) string) []string {
	var all []string
	add := func(dir string) {
		if dir = filepath.Clean(dir); filepath.IsAbs(dir) && !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	add(getenv("HOME"))
	if runtime.GOOS == "windows" {
		add(getenv("USERPROFILE"))
		return all
	}
	if account, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil {
		add(account.HomeDir)
	}
	if name := getenv("SUDO_USER"); name != "" && os.Geteuid() == 0 {
		if account, err := user.Lookup(name); err == nil {
			add(account.HomeDir)
		}
	}
	return all
}
