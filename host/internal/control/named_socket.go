package control

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// ListenAt opens a socket with a given name in a directory, which it creates with mode
// 0700. It returns an error if an existing directory is open to other users. A socket of
// that name is replaced, so the caller must know that nobody listens at it.
func ListenAt(dir, name string) (*net.UnixListener, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("private socket: %w", err)
	}
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	name = filepath.Join(dir, name)
	os.Remove(name + newSocketSuffix) //nolint:errcheck // a killed process may have left it
	return listenAs(name)
}

// Dial connects to a socket, and gives up after two seconds. The path may be longer than the
// system permits for sockets on Linux.
func Dial(ctx context.Context, name string) (net.Conn, error) { return dial(ctx, name) }

// IsOwner reports whether the process at the other end of a connection belongs to this
// user. Where the system does not tell, it reports true: then only the permissions of
// the socket's directory protect it.
func IsOwner(conn *net.UnixConn) bool {
	uid, known := peerUID(conn)
	return !known || uid == os.Getuid()
}
