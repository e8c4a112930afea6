//go:build linux

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// A socket outside the roots is closed until --allow-socket opens it.
func TestAllowSocket(t *testing.T) {
	usable, _ := levels(t)
	if _, err := exec.LookPath("perl"); err != nil || !slices.Contains(usable, "L2") {
		t.Skip("no perl, or no L2")
	}
	p := newOuterPlace(t)
	path := filepath.Join(p.dir, "renamed")
	l, err := net.Listen("unix", path+"0")
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, os.Rename(path+"0", path))
	go func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Write([]byte("answered\n"))
			conn.Close()
		}
	}()
	ask := `perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "$!"; print <$s>' ` + path
	require.Contains(t, p.serve("--sandbox", "L2").bash(ask).Text, "Permission denied")
	require.Contains(t, p.serve("--sandbox", "L2", "--allow-socket", path).bash(ask).Text, "answered")

	out, err := exec.Command(mcpkittest.Build(t, "./tools/bash"), "--sandbox", "L1", "--allow-socket", path, "--root", p.root).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "--allow-socket needs level L2")
}
