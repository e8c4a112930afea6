package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Isolate makes attr clone the process into new namespaces. Inside it keeps its user id,
// and has the rights over the namespaces that it needs to set them up. Without network,
// it gets a network namespace without connections, too.
func Isolate(attr *syscall.SysProcAttr, network bool) {
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if !network {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	attr.UidMappings = idMappings("/proc/self/uid_map", os.Geteuid())
	attr.GidMappings = idMappings("/proc/self/gid_map", os.Getegid())
	attr.GidMappingsEnableSetgroups = os.Geteuid() == 0
	// SETPCAP allows to drop the other capabilities for good. SYS_PTRACE
	// allows to read the descriptors and memory of processes that are not
	// dumpable (ssh-agent), when the supervisor makes their calls.
	// DAC_OVERRIDE is needed by overlayfs, which has the rights of the process
	// that mounts it, in a directory of mode 0.
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_PTRACE, unix.CAP_DAC_OVERRIDE}
}

// idMappings returns identity mappings of ids. For root it maps all ids, so that
// the owners of files are shown correctly. For another user the kernel only
// allows to map the user's own id.
func idMappings(file string, own int) []syscall.SysProcIDMap {
	if os.Geteuid() == 0 {
		if text, err := os.ReadFile(file); err == nil {
			var maps []syscall.SysProcIDMap
			for line := range strings.Lines(string(text)) {
				fields := strings.Fields(line)
				if len(fields) != 3 {
					continue
				}
				first, _ := strconv.Atoi(fields[0])
				size, _ := strconv.Atoi(fields[2])
				maps = append(maps, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: size})
			}
			if len(maps) > 0 {
				return maps
			}
		}
	}
	return []syscall.SysProcIDMap{{ContainerID: own, HostID: own, Size: 1}}
}

// confine restricts this thread, and so all processes cloned from it, to the
// level. Every step must succeed: it returns an error for a restriction that
// cannot be enforced. The caller must serve the returned calls; nil means
// none.
func confine(s *Spec) (*callServer, error) {
	if err := s.Limits.apply(s.Level); err != nil || s.Level == Off {
		return nil, err
	}
	var sockets []fileID
	if s.Level == L2 {
		var err error
		if sockets, err = arrangeMounts(s); err != nil {
			return nil, fmt.Errorf("mounts: %w", err)
		}
		if !s.Network {
			if err := enableLoopback(); err != nil {
				return nil, fmt.Errorf("loopback: %w", err)
			}
		}
	}
	rules, err := s.newRules()
	if err == nil {
		err = s.allowTemp(rules)
	}
	if err != nil {
		return nil, err
	}
	listener, err := restrict(s)
	if err != nil {
		return nil, err
	}
	return newCallServer(s, listener, sockets), rules.enforce()
}

// restrict drops capabilities and filters the system calls of this thread. It
// returns the listener for the calls that the supervisor answers, -1 for none.
func restrict(s *Spec) (listener int, err error) {
	if err := dropCapabilities(); err != nil {
		return -1, fmt.Errorf("capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("no_new_privs: %w", err)
	}
	return restrictCalls(filterOptions{level: s.Level, network: s.Network, noUnix: s.NoUnix, undo: s.Undo != "", watch: s.Watch})
}

// enableLoopback enables the loopback interface in a new network namespace.
func enableLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// dropCapabilities drops all capabilities of this thread for good. It also
// empties the bounding set, if permitted. A plain user cannot empty it, but
// exec gives such a user no capabilities.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	if err := unix.Capget(&header, &now[0]); err != nil {
		return err
	}
	if now[0].Effective&(1<<unix.CAP_SETPCAP) != 0 {
		for c := uintptr(0); c < 64; c++ {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
				break // after the last capability
			} else if err != nil {
				return err
			}
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	var none [2]unix.CapUserData
	_, _, errno := unix.Syscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// devices lists the devices that a command may use.
var devices = [...]string{"null", "zero", "full", "random", "urandom", "tty"}

// systemDirs lists the directories readable at L1. Files below /etc that only
// root may read are excluded.
var systemDirs = [...]string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu", "/snap", "/proc", "/sys",
	"/var/lib", "/var/cache", "/run/systemd/resolve", "/run/current-system",
}

// newRules returns the file rules of the level, without the rule for the
// private temporary directory.
func (s *Spec) newRules() (*ruleset, error) {
	rules, err := newRuleset(s.Level == L1 && !s.Network)
	if err != nil {
		return nil, err
	}
	if err := s.allowFiles(rules); err != nil {
		unix.Close(rules.fd)
		return nil, err
	}
	return rules, nil
}

// allowTemp adds the rule for the private temporary directory.
func (s *Spec) allowTemp(rules *ruleset) error {
	if s.Level != L1 { // at L2 it is mounted
		return nil
	}
	return rules.allow(s.Temp, writeRights, refuseLinks)
}

// allowFiles adds the rights of the level to rules.
func (s *Spec) allowFiles(rules *ruleset) error {
	grants := map[string]uint64{}
	var fixed []string
	if s.Level == L2 {
		// Files that must not be read are not mounted.
		grants["/"], grants["/tmp"], grants["/var/tmp"] = readRights, writeRights, writeRights
		grants["/dev"] = readRights | deviceRights
		grants["/dev/shm"] = writeRights
	} else {
		apart := []string{"/etc", s.Home}
		masked := slices.Concat(s.Mask, s.Cover)
		for _, dir := range systemDirs {
			// Exclude a home in a system directory, as services have, and
			// covered directories. Also exclude files that are masked because
			// a link of a credential store leads there.
			if s.Home != "" && IsBeneath(dir, s.Home) || slices.ContainsFunc(masked, func(m string) bool { return IsBeneath(dir, m) }) {
				apart = append(apart, dir)
			} else {
				fixed = append(fixed, dir)
			}
		}
		for _, dir := range apart {
			for _, name := range rules.openEntries(dir, masked) {
				grants[name] = readRights
			}
		}
		for _, name := range devices {
			grants["/dev/"+name] = deviceRights
		}
	}
	if s.Probe {
		fixed = append(fixed[:len(fixed):len(fixed)], Self)
	}
	for _, dir := range s.Shown {
		if s.Level == L2 {
			grants[dir] = readRights
			continue
		}
		for _, name := range rules.openEntries(dir, s.Mask) {
			grants[name] = readRights
		}
	}
	for _, dir := range s.Writable {
		grants[dir] = writeRights
	}
	for path, rights := range grants {
		if err := rules.allow(path, rights, unix.O_NOFOLLOW); err != nil {
			return err
		}
	}
	for path, rights := range s.rootGrants(rules) {
		if err := rules.allow(path, rights, refuseLinks); err != nil {
			return err
		}
	}
	for _, path := range fixed {
		if err := rules.allow(path, readRights, 0); err != nil { // /bin may be a link
			return err
		}
	}
	return nil
}

// rootGrants returns the rights on the roots, by path. A rule of Landlock
// applies to everything below its directory, and at L1 no mount can restrict
// it again. If a root contains a read-only root or the kernel's own files, its
// entries get the rights instead of the root: then no new entries can be
// created in the directories above those.
func (s *Spec) rootGrants(rules *ruleset) map[string]uint64 {
	grants := map[string]uint64{}
	for _, root := range s.Roots {
		if root.ReadOnly {
			grants[root.Path] |= readRights
			continue
		}
		names := []string{root.Path}
		if s.Level == L1 {
			names = rules.openEntries(root.Path, s.unwritableDirs(root.Path))
		}
		for _, name := range names {
			grants[name] |= writeRights
		}
		grants[root.Path] |= readRights
	}
	return grants
}

// unwritableDirs lists the directories in a root that must not be written.
func (s *Spec) unwritableDirs(root string) []string {
	var names []string
	for _, other := range s.Roots {
		if other.ReadOnly && other.Path != root && IsBeneath(root, other.Path) {
			names = append(names, other.Path)
		}
	}
	if root == "/" {
		names = append(names, "/proc", "/sys", "/dev", "/run")
	}
	return names
}

// openEntries returns dir, or its entries if dir contains a masked path.
// Masked paths are left out, and a directory that contains one is again
// replaced by its entries.
func (r *ruleset) openEntries(dir string, masked []string) []string {
	if dir == "" {
		return nil
	}
	if !slices.ContainsFunc(masked, func(m string) bool { return IsBeneath(dir, m) }) {
		return []string{dir}
	}
	r.addDependency(dir, false, true)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		hidden, holds := false, false
		for _, m := range masked {
			hidden = hidden || IsBeneath(m, name)
			holds = holds || IsBeneath(name, m)
		}
		switch {
		case hidden:
		case holds && entry.IsDir():
			names = append(names, r.openEntries(name, masked)...)
		case entry.Type()&os.ModeSymlink != 0:
			// A rule would apply to the target of the link.
			if real, err := filepath.EvalSymlinks(name); err == nil && IsBeneath(dir, real) && real != dir {
				continue // the target has its own rule
			}
		default:
			names = append(names, name)
		}
	}
	return names
}
