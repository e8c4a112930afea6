package control

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// makeDir returns the directory of the sockets in a state directory. It creates it if it does
// not exist. It returns an error if others can use it.
func makeDir(state string) (string, error) {
	if state == "" {
		return "", errors.New("private socket: no state directory; use --state DIR")
	}
	dir := hostsDir(state)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("private socket: %w", err)
	}
	return dir, checkDir(dir)
}

// checkDir returns an error if a directory for sockets is not the user's own, or others
// can enter it. On Windows it only checks that it is a directory.
func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("private socket: %s is not a directory", dir)
	case runtime.GOOS == "windows":
		return nil
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("private socket: %s is accessible to other users (mode %v); chmod 700 it", dir, info.Mode().Perm())
	case !isOwn(info):
		return fmt.Errorf("private socket: %s belongs to another user", dir)
	}
	return nil
}

// Suffixes of the names of sockets.
const (
	socketSuffix    = ".sock"
	newSocketSuffix = ".new" // suffix of a socket before it is listened at
)

// listen opens a socket with a new name in dir, and returns its path. It has this name only
// after it is listened at, so a socket that refuses connections was left by a host that has
// ended.
func listen(dir string) (*net.UnixListener, string, error) {
	name := filepath.Join(dir, strconv.Itoa(os.Getpid())+"-"+strings.ToLower(rand.Text()[:8])+socketSuffix)
	listener, err := listenAs(name)
	return listener, name, err
}

// listenAs opens a socket at a path, which only this user can connect to. It replaces
// another socket of that name only when the new one is listened at. After an error nothing
// is left.
func listenAs(name string) (listener *net.UnixListener, err error) {
	err = withShortPath(name+newSocketSuffix, func(short string) (err error) {
		listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err = os.Chmod(name+newSocketSuffix, 0o600); err == nil {
		err = os.Rename(name+newSocketSuffix, name)
	}
	if err != nil {
		listener.Close()                  //nolint:errcheck // it is not used
		os.Remove(name + newSocketSuffix) //nolint:errcheck // likewise
		return nil, err
	}
	return listener, nil
}

// maxPath bounds the length of a socket's path on all systems.
const maxPath = 103

// withShortPath calls do with a path of the socket name that is short enough for the system.
// It returns do's error, or on systems other than Linux an error for a name of more than
// maxPath bytes.
func withShortPath(name string, do func(short string) error) error {
	if len(name) <= maxPath {
		return do(name)
	}
	if runtime.GOOS != "linux" {
		return fmt.Errorf("socket path %s has %d bytes, more than the limit of %d; use a shorter --state", name, len(name), maxPath)
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // only read
	return do(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(name)))
}

// pidOf returns the process id in a socket's name; 0: the name has none.
func pidOf(name string) int {
	digits, _, _ := strings.Cut(filepath.Base(name), "-")
	pid, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return pid
}
