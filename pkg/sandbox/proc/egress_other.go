//go:build !linux

package proc

import (
	"errors"
	"os"
)

// errNoEgress is returned for allowed hosts, which need network namespaces.
var errNoEgress = errors.New("commands cannot be limited to hosts on this system")

// newEgressSocketPair returns errNoEgress.
func newEgressSocketPair() (*egressSocketPair, error) { return nil, errNoEgress }

// receiveListener returns errNoEgress.
func (l *egressSocketPair) receiveListener() (*os.File, error) { return nil, errNoEgress }
