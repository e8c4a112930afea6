package sandbox

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
)

// Homes returns the home directories whose credential stores are this user's: the
// one that the environment names, the one of the account in the user database, and
// for root that of the user who called sudo. They are absolute and clean; links in
// them are not resolved. HOME alone is not enough, because a program can be started
// without it or with somebody else's.
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
