package proc

import (
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// maxSocketName bounds the length of a unix socket's name in bytes (unix(7)).
const maxSocketName = 107

// makeProbeTargets makes the objects that the probe tries to access: files in dir, and
// listeners. The caller must call closeListeners, even with an error, and removes dir.
// network says that commands have the network.
func makeProbeTargets(dir string, level Level, network bool) (_ probeTargets, closeListeners func(), _ error) {
	b := probeTargets{
		Level: level, Network: network, Root: filepath.Join(dir, "root"), ReadOnlyRoot: filepath.Join(dir, "ro"), OutsideDir: filepath.Join(dir, "outside"),
		ServerPID: os.Getpid(), Mark: "toolroom-selftest-" + rand.Text(),
	}
	if level == L2 && isHiddenAtL2(dir) {
		// L2 hides the files of /tmp completely, which would not test the
		// protection of visible files: use a directory that is read-only at
		// L2.
		b.OutsideDir = "/"
	}
	b.OwnedOutside = findOwnedOutside(level, dir)
	var closers []func() error
	closeListeners = func() {
		for _, c := range closers {
			c()
		}
	}
	b.SecretDir = filepath.Join(dir, "home", ".ssh")
	err := errors.Join(os.Mkdir(b.Root, 0o700), os.Mkdir(b.ReadOnlyRoot, 0o700), os.Mkdir(filepath.Join(dir, "own"), 0o700), os.MkdirAll(b.SecretDir, 0o700), os.MkdirAll(filepath.Join(dir, "outside"), 0o700))
	if level == L2 { // in the root, since the directory "home" in /tmp may be hidden
		b.SecretDir = filepath.Join(b.Root, "secret")
		err = errors.Join(err, os.Mkdir(b.SecretDir, 0o700))
	}
	err = errors.Join(err,
		os.WriteFile(filepath.Join(b.SecretDir, "key"), []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(dir, "outside", "file"), []byte("outside"), 0o600))
	tcp, e := net.Listen("tcp", "127.0.0.1:0")
	if err = errors.Join(err, e); e == nil {
		b.TCP, closers = tcp.Addr().String(), append(closers, tcp.Close)
	}
	udp, e := net.ListenPacket("udp", "127.0.0.1:0")
	if err = errors.Join(err, e); e == nil {
		b.UDP, closers = udp.LocalAddr().String(), append(closers, udp.Close)
	}
	if name := filepath.Join(b.Root, "s"); len(name) <= maxSocketName {
		b.NamedSocket = name
		named, e := net.Listen("unix", b.NamedSocket)
		if err = errors.Join(err, e); e == nil {
			closers = append(closers, named.Close)
		}
		renamed, e := net.Listen("unix", filepath.Join(b.ReadOnlyRoot, "a"))
		if err = errors.Join(err, e); e == nil {
			b.RenamedSocket, closers = filepath.Join(b.ReadOnlyRoot, "b"), append(closers, renamed.Close)
			err = errors.Join(err, os.Rename(filepath.Join(b.ReadOnlyRoot, "a"), b.RenamedSocket))
		}
	}
	b.AbstractName = "@" + b.Mark
	abstract, e := net.Listen("unix", b.AbstractName)
	if err = errors.Join(err, e); e == nil {
		closers = append(closers, abstract.Close)
	}
	return b, closeListeners, err
}

// findOwnedOutside returns a file outside the roots that belongs to this user,
// for the chmod test, "" if it finds none. dir holds the probe's targets.
func findOwnedOutside(level Level, dir string) string {
	if level != L2 {
		return filepath.Join(dir, "outside")
	}
	home, _ := filepath.EvalSymlinks(os.Getenv("HOME"))
	for _, name := range []string{home, "/", "/usr"} {
		info, err := os.Stat(name)
		if err != nil || !filepath.IsAbs(name) || isHiddenAtL2(name) { // the probe's own directory: EvalSymlinks("") returned "."
			continue
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) == os.Geteuid() {
			return name
		}
	}
	return ""
}

// isHiddenAtL2 reports whether L2 mounts an empty or private directory over dir
// or above it.
func isHiddenAtL2(dir string) bool {
	return supervise.IsBeneath("/tmp", dir) || supervise.IsBeneath("/var/tmp", dir) || supervise.IsBeneath("/run", dir)
}
