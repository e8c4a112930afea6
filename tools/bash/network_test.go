//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// reachers try, each in a different way, to reach a listener on PORT. They run
// from files in the root, which the policy cannot inspect; clients that it
// knows are copied, so that it does not recognize them.
var reachers = []struct{ name, program, file, text, command string }{
	{"bash", "bash", "r.sh", "exec 3<>/dev/tcp/127.0.0.1/PORT && echo x >&3\n", "bash r.sh"},
	{"python", "python3", "r.py", "import socket\nsocket.create_connection(('127.0.0.1', PORT), 5).send(b'x')\n", "python3 r.py"},
	{"perl", "perl", "r.pl", "use IO::Socket::INET; my $s = IO::Socket::INET->new('127.0.0.1:PORT') or die; print $s 'x';\n", "perl r.pl"},
	{"node", "node", "r.js", "require('net').connect(PORT, '127.0.0.1', function () { this.end('x') }).on('error', () => process.exit(1))\n", "node r.js"},
	{"ruby", "ruby", "r.rb", "require 'socket'; TCPSocket.new('127.0.0.1', PORT).write('x')\n", "ruby r.rb"},
	{"php", "php", "r.php", "<?php fwrite(fsockopen('127.0.0.1', PORT), 'x');\n", "php r.php"},
	{"lua", "lua", "r.lua", "require('socket').connect('127.0.0.1', PORT):send('x')\n", "lua r.lua"},
	{"tcl", "tclsh", "r.tcl", "puts [socket 127.0.0.1 PORT] x\n", "tclsh r.tcl"},
	{"java", "java", "R.java", "class R { public static void main(String[] a) throws Exception { new java.net.Socket(\"127.0.0.1\", PORT).getOutputStream().write(120); } }\n", "java R.java"},
	{"C", "cc", "r.c", `#include <arpa/inet.h>
#include <sys/socket.h>
int main() { struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)}; inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
return connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&a, sizeof a); }
`, "cc -o r r.c && ./r"},
	{"curl", "curl", "", "", "cp $(type -P cu\"\"rl) fetch1 && ./fetch1 -sm 5 http://127.0.0.1:PORT/"},
	{"wget", "wget", "", "", "cp $(type -P wg\"\"et) fetch2 && ./fetch2 -qO- -T 5 -t 1 http://127.0.0.1:PORT/"},
	{"git", "git", "", "", "git ls-remote git://127.0.0.1:PORT/x"},
	{"openssl", "openssl", "", "", "echo | timeout 5 openssl s_client -connect 127.0.0.1:PORT"},
	{"ssh", "ssh", "", "", "ssh -o BatchMode=yes -o ConnectTimeout=5 -p PORT 127.0.0.1 true"},
	{"gawk", "gawk", "r.awk", "BEGIN { s = \"/inet/tcp/0/127.0.0.1/PORT\"; print \"x\" |& s; close(s) }\n", "gawk -f r.awk"},
	{"socat", "socat", "", "", "cp $(type -P so\"\"cat) fetch3 && echo x | ./fetch3 - TCP:127.0.0.1:PORT"},
	{"UDP", "bash", "u.sh", "echo x > /dev/udp/127.0.0.1/UDPPORT\n", "bash u.sh"},
	{"abstract socket", "python3", "a.py", "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('\\0ABSTRACT')\n", "python3 a.py"},
}

// outsider listens for calls of the reachers.
type outsider struct {
	calls    atomic.Int64
	own      int64         // calls made by reached
	settle   chan struct{} // the UDP listener has read everything sent before
	tcp, udp int
	abstract string
}

func newOutsider(t *testing.T) *outsider {
	t.Helper()
	o := &outsider{abstract: fmt.Sprintf("mcp-bash-test-%d", os.Getpid()), settle: make(chan struct{})}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	unix, err := net.Listen("unix", "@"+o.abstract)
	require.NoError(t, err)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { tcp.Close(); unix.Close(); udp.Close() })
	o.tcp, o.udp = tcp.Addr().(*net.TCPAddr).Port, udp.LocalAddr().(*net.UDPAddr).Port
	for _, listener := range []net.Listener{tcp, unix} {
		go func() { // ends with the listener
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				o.calls.Add(1)
				conn.Close()
			}
		}()
	}
	go func() { // ends with the socket
		for buf := make([]byte, 10); ; {
			n, _, err := udp.ReadFrom(buf)
			switch {
			case err != nil:
				return
			case string(buf[:n]) == ownPacket:
				o.settle <- struct{}{}
			default:
				o.calls.Add(1)
			}
		}
	}()
	return o
}

// ownPacket is the packet that the test sends to the UDP listener.
const ownPacket = "settled"

// reached returns the number of calls so far. A listener takes calls in order,
// so after the test's own call all earlier ones have been counted.
func (o *outsider) reached(t *testing.T) int64 {
	t.Helper()
	for _, at := range []struct{ network, address string }{{"tcp", fmt.Sprintf("127.0.0.1:%d", o.tcp)}, {"unix", "@" + o.abstract}} {
		conn, err := net.Dial(at.network, at.address)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, conn)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		o.own++
	}
	conn, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", o.udp))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte(ownPacket))
	require.NoError(t, err)
	<-o.settle
	return o.calls.Load() - o.own
}

// With the network off, no available program or language reaches a listener
// outside. Without confinement each of them does; otherwise it counts as not
// run.
func TestNetworkIsOff(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	t.Parallel()
	p := newOuterPlace(t)
	o := newOutsider(t)
	fill := strings.NewReplacer("UDPPORT", fmt.Sprint(o.udp), "PORT", fmt.Sprint(o.tcp), "ABSTRACT", o.abstract)
	usable, missing := levels(t)
	servers := map[string]server{}
	for _, level := range usable {
		flags := []string{"--sandbox", level}
		if level == "off" {
			flags = append(flags, "--net", "on")
		}
		servers[level] = p.serve(flags...)
	}
	cases, escapes, ways := 0, 0, 0
	var notRun []string
	for _, r := range reachers {
		if r.name == "java" && os.Getenv("BASH_LONG") == "" { // takes seconds
			notRun = append(notRun, r.name+" (BASH_LONG)")
			continue
		}
		if _, err := exec.LookPath(r.program); err != nil {
			notRun = append(notRun, r.name)
			continue
		}
		if r.file != "" {
			p.write("root/"+r.file, fill.Replace(r.text))
		}
		try := func(level string) (reached bool) {
			before := o.reached(t)
			answer := servers[level].bash(fill.Replace(r.command), "timeout", 60_000)
			require.NotEqual(t, "COMMAND_DENIED", answer.Code, "%s: %s", r.name, answer.Text)
			return o.reached(t) > before
		}
		reached := false
		within(t, r.name+" has been tried", func() bool { reached = reached || try("off"); return true })
		if !reached {
			notRun = append(notRun, r.name+" (does not reach it either without confinement)")
			continue
		}
		ways++
		for _, level := range usable {
			if level == "off" {
				continue
			}
			cases++
			if try(level) {
				escapes++
				t.Errorf("%s reached the listener from %s", r.name, level)
			}
		}
	}
	t.Logf("%d ways in %d cases, %d escapes, not run %v, levels not run %v", ways, cases, escapes, notRun, missing)
	require.GreaterOrEqual(t, ways, 4, "the machine has too little to try this with")
}

// If a command fails because the network is off, the answer names the flag that
// opens it; known clients are refused before they run.
func TestNetworkHint(t *testing.T) {
	s := newPlace(t).serve()
	r := s.bash("echo 'fatal: Could not resolve host: example.com' >&2; exit 128")
	require.Contains(t, r.Text, "--net on")
	require.NotContains(t, s.bash("echo 'Could not resolve host'").Text, "--net", "it did not fail")
	r = s.bash("curl https://example.com")
	require.Equal(t, "COMMAND_DENIED", r.Code)
	require.Contains(t, r.Text, "network")
	require.Contains(t, s.bash("exit 1").Text, "sandbox: writes limited to roots, network off")
	open := newPlace(t).serve("--net", "on")
	r = open.bash("echo 'Could not resolve host'; exit 1")
	require.NotContains(t, r.Text, "--net")
	require.NotContains(t, r.Text, "network off")
	require.Equal(t, "on", r.Meta["sandbox"].(map[string]any)["net"])
}
