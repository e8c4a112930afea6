//go:build !linux

package control

import "net"

// PeerPID returns 0: this system does not tell.
func PeerPID(net.Conn) (pid int) { return 0 }
