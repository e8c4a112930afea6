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

// Isolate makes the clone start in name spaces of its own. It has the same
// user id there as outside, and the rights over the new name spaces that it
// needs to arrange them.
func Isolate(attr *syscall.SysProcAttr, network bool) {
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if !network {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	attr.UidMappings = mappings("/proc/self/uid_map", os.Geteuid())
	attr.GidMappings = mappings("/proc/self/gid_map", os.Getegid())
	attr.GidMappingsEnableSetgroups = os.Geteuid() == 0
	// SETPCAP is what allows to give the others up for good.
	// SYS_PTRACE is for the descriptors and addresses of the calls that it makes
	// for processes that cannot be dumped (ssh-agent), and for their memory.
	// DAC_OVERRIDE is for overlayfs, which works with the rights of the process
	// that mounts it, in a directory of mode 0.
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_PTRACE, unix.CAP_DAC_OVERRIDE}
}

// mappings keeps ids as they are: all of them for root, so that owners are
// shown right, else only the user's own, as the kernel demands.
func mappings(file string, own int) []syscall.SysProcIDMap {
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

// confine restricts this thread, and so all it clones, as the level says. Each
// step is one that must work: what cannot be enforced is an error. The calls
// that it returns are to be served; nil has none.
func confine(s *Spec) (*calls, error) {
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
			if err := loopbackUp(); err != nil {
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
	return newCalls(s, listener, sockets), rules.enforce()
}

// restrict takes the rights from this thread that do not go by files. It
// returns the listener for its calls, -1 for none.
func restrict(s *Spec) (listener int, err error) {
	if err := dropCapabilities(); err != nil {
		return -1, fmt.Errorf("capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("no_new_privs: %w", err)
	}
	return restrictCalls(filterFor{level: s.Level, network: s.Network, noUnix: s.NoUnix, undo: s.Undo != ""})
}

// loopbackUp makes 127.0.0.1 work in a new network name space.
func loopbackUp() error {
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

// dropCapabilities leaves this thread without any, and without a way to get
// one back: the bounding set is empty as well, where it may be emptied. A user
// without rights may not, but has none that exec could give.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	if err := unix.Capget(&header, &now[0]); err != nil {
		return err
	}
	if now[0].Effective&(1<<unix.CAP_SETPCAP) != 0 {
		for c := uintptr(0); c < 64; c++ {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
				break // past the last one
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

// devices are those that a command may use.
var devices = [...]string{"null", "zero", "full", "random", "urandom", "tty"}

// systemDirs may be read at L1. Below /etc what only root may read is left out.
var systemDirs = [...]string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu", "/snap", "/proc", "/sys",
	"/var/lib", "/var/cache", "/run/systemd/resolve", "/run/current-system",
}

// newRules makes the rules of the level, but for those of the private
// temporary directory.
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

// allowTemp adds the private temporary directory.
func (s *Spec) allowTemp(rules *ruleset) error {
	if s.Level != L1 { // it is mounted
		return nil
	}
	return rules.allow(s.Temp, mayWrite, noLinks)
}

// allowFiles gives the rights of the level to rules.
func (s *Spec) allowFiles(rules *ruleset) error {
	grants := map[string]uint64{}
	var fixed []string
	if s.Level == L2 {
		// What must not be read is not mounted.
		grants["/"], grants["/tmp"], grants["/var/tmp"] = mayRead, mayWrite, mayWrite
		grants["/dev"] = mayRead | mayDevice
		grants["/dev/shm"] = mayWrite
	} else {
		apart := []string{"/etc", s.Home}
		masked := slices.Concat(s.Mask, s.Cover)
		for _, dir := range systemDirs {
			// A home in one, as services have, is left out of it, and so is what is
			// covered, or masked because a link of a credential store leads there.
			if s.Home != "" && Beneath(dir, s.Home) || slices.ContainsFunc(masked, func(m string) bool { return Beneath(dir, m) }) {
				apart = append(apart, dir)
			} else {
				fixed = append(fixed, dir)
			}
		}
		for _, dir := range apart {
			for _, name := range rules.openEntries(dir, masked) {
				grants[name] = mayRead
			}
		}
		for _, name := range devices {
			grants["/dev/"+name] = mayDevice
		}
	}
	if s.Probe {
		fixed = append(fixed[:len(fixed):len(fixed)], Self)
	}
	for _, dir := range s.Shown {
		grants[dir] = mayRead
	}
	for _, dir := range s.Writable {
		grants[dir] = mayWrite
	}
	for path, rights := range grants {
		if err := rules.allow(path, rights, unix.O_NOFOLLOW); err != nil {
			return err
		}
	}
	for path, rights := range s.rootGrants(rules) {
		if err := rules.allow(path, rights, noLinks); err != nil {
			return err
		}
	}
	for _, path := range fixed {
		if err := rules.allow(path, mayRead, 0); err != nil { // /bin may be a link
			return err
		}
	}
	return nil
}

// rootGrants are the rights on the roots. A rule holds for all that is
// beneath, so at L1, where no mount takes them back, a root that holds one that
// must not be written, or the kernel's own files, gets them by its entries: no
// new ones can be made in the directories above those.
func (s *Spec) rootGrants(rules *ruleset) map[string]uint64 {
	grants := map[string]uint64{}
	for _, root := range s.Roots {
		if root.ReadOnly {
			grants[root.Path] |= mayRead
			continue
		}
		names := []string{root.Path}
		if s.Level == L1 {
			names = rules.openEntries(root.Path, s.unwritable(root.Path))
		}
		for _, name := range names {
			grants[name] |= mayWrite
		}
		grants[root.Path] |= mayRead
	}
	return grants
}

// unwritable lists what in a root is not to be written.
func (s *Spec) unwritable(root string) []string {
	var names []string
	for _, other := range s.Roots {
		if other.ReadOnly && other.Path != root && Beneath(root, other.Path) {
			names = append(names, other.Path)
		}
	}
	if root == "/" {
		names = append(names, "/proc", "/sys", "/dev", "/run")
	}
	return names
}

// openEntries lists what is in dir but for what is masked. A directory that
// holds something masked is replaced by its entries.
func (r *ruleset) openEntries(dir string, masked []string) []string {
	if dir == "" {
		return nil
	}
	if !slices.ContainsFunc(masked, func(m string) bool { return Beneath(dir, m) }) {
		return []string{dir}
	}
	r.goesBy(dir, false, true)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		hidden, holds := false, false
		for _, m := range masked {
			hidden = hidden || Beneath(m, name)
			holds = holds || Beneath(name, m)
		}
		switch {
		case hidden:
		case holds && entry.IsDir():
			names = append(names, r.openEntries(name, masked)...)
		case entry.Type()&os.ModeSymlink != 0:
			// A rule would hold for where the link leads.
			if real, err := filepath.EvalSymlinks(name); err == nil && Beneath(dir, real) && real != dir {
				continue // it has a rule of its own
			}
		default:
			names = append(names, name)
		}
	}
	return names
}
