package supervise

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock's access rights, grouped by their use.
const (
	readRights     = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	deviceRights   = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	fileRights     = unix.LANDLOCK_ACCESS_FS_EXECUTE | deviceRights | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	writeRights    = allRights &^ unix.LANDLOCK_ACCESS_FS_MAKE_CHAR &^ unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK &^ unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	allRights      = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV<<1 - 1
	rightsOfABI1   = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1
	minLandlockABI = 3 // older versions do not restrict truncate
	SignalsABI     = 6 // from this version on, signals and abstract sockets can be restricted
)

// LandlockABI returns the version of the kernel's Landlock, 0 without
// Landlock.
func LandlockABI() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// handledRights returns the access rights that version abi of Landlock can
// restrict.
func handledRights(abi int) uint64 {
	switch {
	case abi >= 5:
		return allRights
	case abi >= 3:
		return allRights &^ unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	case abi == 2:
		return allRights &^ unix.LANDLOCK_ACCESS_FS_IOCTL_DEV &^ unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	return rightsOfABI1
}

// ruleset is a Landlock ruleset under construction: the rights that a thread
// will keep.
type ruleset struct {
	fd           int
	rights       uint64
	dependencies []ruleDependency
}

// newRuleset returns a ruleset that allows no access. With holdNetwork it also
// denies TCP bind and connect, from version 4 on. It returns an error before
// version 3.
func newRuleset(holdNetwork bool) (*ruleset, error) {
	abi := LandlockABI()
	if abi < minLandlockABI {
		return nil, fmt.Errorf("version %d of Landlock, and %d is needed", abi, minLandlockABI)
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handledRights(abi)}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if abi >= 4 {
		size += unsafe.Sizeof(attr.Handled_access_net)
		if holdNetwork {
			attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
	}
	if abi >= SignalsABI {
		size += unsafe.Sizeof(attr.Scoped)
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	return &ruleset{fd: int(fd), rights: attr.Handled_access_fs}, nil
}

// refuseLinks requires a path without links: a command that still runs may replace
// a directory on the way to a root in another root by a link.
const refuseLinks = -1

// allow grants rights on a file, or on a directory with everything below. A
// missing file gets no rule. A link gets none unless follow is 0, since a rule
// would apply to its target.
func (r *ruleset) allow(path string, rights uint64, follow int) error {
	return r.allowFile(path, rights, follow, r.addDependency(path, follow == 0, false))
}

// allowFile does what allow does. follow is refuseLinks, or a flag of open(2) for the
// last component: 0 or O_NOFOLLOW. on is the dependency on the path, or nil. If another
// file was opened than on describes, because the path was changed meanwhile, the rules
// never count as current. A missing or inaccessible file is no error.
func (r *ruleset) allowFile(path string, rights uint64, follow int, on *ruleDependency) error {
	var fd int
	var err error
	if follow == refuseLinks {
		fd, err = openNoLinks(path, unix.O_NOFOLLOW)
	} else {
		fd, err = unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|follow, 0)
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTDIR) {
		on.invalidateUnless(unix.Stat_t{})
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	on.invalidateUnless(info)
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return nil
	case unix.S_IFDIR:
	default:
		rights &= fileRights
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	runtime.KeepAlive(&attr)
	if errno != 0 {
		return &os.PathError{Op: "landlock_add_rule", Path: path, Err: errno}
	}
	return nil
}

// enforce restricts this thread, and everything cloned from it, permanently.
func (r *ruleset) enforce() error {
	defer unix.Close(r.fd)
	_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return nil
}
