//go:build linux

package proc_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Attacks on unix sockets of the user in $S, outside the roots: under the
// bound name, renamed, linked, bound by a relative name, of other types and,
// as root, of another network namespace. $T is testdata/sockets.c.
var socketAttacks = []attack{
	{"connect", bothLevels, "", `$T connect $S/named`},
	{"renamed", bothLevels, "", `$T connect $S/renamed`},
	{"relative", bothLevels, "", `$T connect $S/relative`},
	{"hard link outside", bothLevels, "", `$T connect $S/linked`},
	{"symbolic link outside", bothLevels, "", `$T connect $S/symbolic`},
	{"in a directory that was renamed", bothLevels, "", `$T connect $S/moved/s`},
	{"seqpacket", bothLevels, "", `$T connect $S/seqpacket`},
	{"datagram", bothLevels, "", `$T connect $S/datagram`},
	{"send datagrams", bothLevels, "", `$T send $S/datagram`},
	{"send datagrams by half a pair", bothLevels, "", `$T send-pair $S/datagram`},
	{"working directory", bothLevels, "", `cd $S && $T connect renamed`},
	{"working directory and dots", bothLevels, "", `cd $S/moved && $T connect .././renamed`},
	{"link in the root", bothLevels, "", `ln -s $S/renamed l; $T connect l`},
	{"link to its directory", bothLevels, "", `ln -s $S d; $T connect d/renamed`},
	{"chain of links", bothLevels, "", `ln -s $S d; ln -s d/renamed e; ln -s e f; $T connect f`},
	{"dots from the root", bothLevels, "", `$T connect ../services/renamed`},
	{"/proc/self/root", bothLevels, "", `cd $S; $T connect /proc/self/root$PWD/renamed`},
	{"/proc/self/cwd", bothLevels, "", `cd $S; $T connect /proc/self/cwd/renamed`},
	{"/proc/thread-self/cwd", bothLevels, "", `cd $S; $T connect /proc/thread-self/cwd/renamed`},
	{"a descriptor's directory", bothLevels, "", `$T descriptor $S/renamed`},
	{"another process's directory", bothLevels, "", `(cd $S; sleep 5) & sleep 0.1; $T connect /proc/$!/cwd/renamed; kill $!`},
	{"the first process's root", bothLevels, "", `cd $S; $T connect /proc/1/root$PWD/renamed`},
	{"a name without NUL", bothLevels, "", `$T short $S/renamed`},
	{"double slashes", bothLevels, "", `$T connect /$S//renamed`},
	{"a thread with descriptors of its own", bothLevels, "", `$T clone $S/renamed`},
	{"another network namespace", bothLevels, "", `[ -S $S/elsewhere ] && $T connect $S/elsewhere`},
	{"hard link into the root", bothLevels, "", `ln $S/renamed h && $T connect h`},
	{"move into the root", bothLevels, "", `mkdir m && cp -al $S/. m 2>/dev/null; $T connect m/renamed`},
	{"in a read-only root", bothLevels, "", `$T connect $RO/s`},
	{"swapped memory", bothLevels, "", `$T race-memory $S/renamed $TRIES`},
	{"swapped link", bothLevels, "", `$T race-link $S/renamed $TRIES`},
	{"swapped name", bothLevels, "", `$T race-name $S/renamed $TRIES`},
	{"swapped descriptor", bothLevels, "", `$T race-descriptor $S/renamed $TRIES`},
}

// serveSockets makes the sockets and returns variables for the scripts.
func serveSockets(t *testing.T, s *scene) []string {
	t.Helper()
	dir := s.path("services")
	for _, name := range []string{"a", "bin"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	// now is the final name of the socket.
	serve := func(network, name, now string) {
		l, err := net.Listen(network, name)
		require.NoError(t, err)
		s.serveAs(t, l, name, now)
	}
	serve("unix", in("named"), in("named"))
	serve("unix", in("before"), in("renamed"))
	require.NoError(t, os.Rename(in("before"), in("renamed")))
	serve("unix", in("tolink"), in("linked"))
	require.NoError(t, os.Link(in("tolink"), in("linked")))
	require.NoError(t, os.Remove(in("tolink")))
	require.NoError(t, os.Symlink("renamed", in("symbolic")))
	serve("unix", in("a/s"), in("moved/s"))
	require.NoError(t, os.Rename(in("a"), in("moved")))
	serve("unixpacket", in("seqpacket"), in("seqpacket"))
	require.NoError(t, os.MkdirAll(s.path("readonly"), 0o755))
	d, err := os.Open(dir)
	require.NoError(t, err)
	defer d.Close()
	serve("unix", fmt.Sprintf("/proc/self/fd/%d/relative", d.Fd()), in("relative"))
	packets, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: in("datagram")})
	require.NoError(t, err)
	t.Cleanup(func() { packets.Close() })
	settled := make(chan struct{})
	go func() { // ends with the socket
		var b [len(ownPacket)]byte
		for {
			n, err := packets.Read(b[:])
			switch {
			case err != nil:
				return
			case string(b[:n]) == ownPacket:
				settled <- struct{}{}
			default:
				s.reach <- "a datagram"
			}
		}
	}()
	s.settling["datagram"] = func() error {
		conn, err := net.Dial("unixgram", in("datagram"))
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err = conn.Write([]byte(ownPacket)); err == nil {
			<-settled
		}
		return err
	}
	tool := in("bin/sockets") // at L1 it can only be run in a root
	out, err := exec.Command("gcc", "-pthread", "-o", tool, "testdata/sockets.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	if os.Geteuid() == 0 {
		elsewhere := exec.Command("perl", "-MSocket", "-e",
			`socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un($ARGV[0])) or die; listen(S, 5); chmod 0777, $ARGV[0]; $| = 1; print "."; while (accept(C, S)) { close C }`, in("elsewhere"))
		elsewhere.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		ready, err := elsewhere.StdoutPipe()
		require.NoError(t, err)
		if err := elsewhere.Start(); err != nil {
			t.Logf("no other network namespace: %v", err)
		} else {
			ready.Read(make([]byte, 1))
			t.Cleanup(func() { elsewhere.Process.Kill(); elsewhere.Wait() })
		}
	}
	tries := "500"
	if long {
		tries = "100000"
	}
	return []string{"S=" + dir, "T=" + s.path("root/tool"), "TRIES=" + tries}
}

// ownPacket is the datagram sent by the test itself.
const ownPacket = "settled"

// serveAs accepts connections to l, which was bound as name and now has the
// name now. It reports the connections of other processes.
func (s *scene) serveAs(t *testing.T, l net.Listener, name, now string) {
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	t.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if !fromHere(conn) {
				select {
				case s.reach <- name:
				default:
				}
			}
			conn.Close()
		}
	}()
	s.settling[name] = func() error {
		conn, err := net.Dial(l.Addr().Network(), now)
		if err != nil {
			return err
		}
		defer conn.Close()
		conn.Read(make([]byte, 1)) // until the server closes it
		return nil
	}
}

// fromHere reports whether the peer of a connection is this process.
func fromHere(conn net.Conn) (here bool) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		here = err == nil && int(peer.Pid) == os.Getpid()
	})
	return here
}

// TestSocketsOutsideAreClosed: commands cannot reach sockets outside, by any
// system call. Each attack first runs unconfined.
func TestSocketsOutsideAreClosed(t *testing.T) {
	t.Parallel()
	if missing(attack{needs: "gcc perl"}) != "" {
		t.Skip("no gcc or perl")
	}
	s := newScene(t)
	variables := serveSockets(t, s)
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		r, free := s.runner(t, level), s.runner(t, proc.Off)
		online := newRunner(t, proc.Config{Level: level, Network: true, Environ: append(os.Environ(), "HOME="+s.path("home"))})
		proc.TrustLevel(online, level)
		cases := 0
		for _, a := range socketAttacks {
			command := func() proc.Command {
				c := s.command(strings.ReplaceAll(a.script, "$TRIES", variables[2][len("TRIES="):]))
				c.Env = slices.Concat(c.Env, variables)
				return c
			}
			prepare(t, s)
			_, out := run(t, free, command())
			works := strings.Contains(out, "ESCAPED")
			s.settle(t)
			prepare(t, s)
			_, out = run(t, r, command())
			reached := s.settle(t)
			if !works {
				t.Logf("%s: does not work unconfined, not counted: %s", a.name, out)
			} else {
				cases++
			}
			require.NotContains(t, out, "ESCAPED", "%s at %s", a.name, level)
			require.Empty(t, reached, "%s at %s: %s", a.name, level, out)
			prepare(t, s)
			_, out = run(t, online, command())
			require.NotContains(t, out, "ESCAPED", "%s at %s with the network", a.name, level)
			require.Empty(t, s.settle(t), "%s at %s with the network", a.name, level)
		}
		t.Logf("%s: %d attacks, 0 escapes", level, cases)
		require.Greater(t, cases, 20)
	}
}

// prepare copies the tool into the root, and moves a socket into the read-only
// root.
func prepare(t *testing.T, s *scene) {
	t.Helper()
	out, err := exec.Command("cp", s.path("services/bin/sockets"), s.path("root/tool")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	if _, err := os.Lstat(s.path("readonly/s")); err == nil {
		return
	}
	l, err := net.Listen("unix", s.path("readonly/before"))
	require.NoError(t, err)
	require.NoError(t, os.Rename(s.path("readonly/before"), s.path("readonly/s")))
	s.serveAs(t, l, "readonly", s.path("readonly/s"))
}

// settle resets the scene and returns the sockets that were reached. A socket
// accepts connections in order, so after the test's own connection it has
// reported all earlier ones.
func (s *scene) settle(t *testing.T) (reached []string) {
	t.Helper()
	for _, call := range s.settling {
		require.NoError(t, call())
	}
	for len(s.reach) > 0 {
		reached = append(reached, <-s.reach)
	}
	s.reset(t)
	return reached
}

// TestSocketsOfTheUserInRoots: a command can connect to none of the user's
// sockets in its roots, however they got their names.
func TestSocketsOfTheUserInRoots(t *testing.T) {
	t.Parallel()
	if missing(attack{needs: "perl"}) != "" {
		t.Skip("no perl")
	}
	for _, level := range levels(t) {
		for _, network := range []bool{false, true} {
			s := newScene(t)
			in := func(name string) string { return filepath.Join(s.path("root"), name) }
			serve := func(address, now string) {
				l, err := net.Listen("unix", address)
				require.NoError(t, err)
				if address != now && filepath.Base(address) != filepath.Base(now) {
					require.NoError(t, os.Rename(address, now))
				}
				s.serveAs(t, l, filepath.Base(now), now)
			}
			serve(in("absolute"), in("absolute"))
			d, err := os.Open(s.path("root"))
			require.NoError(t, err)
			defer d.Close()
			serve(fmt.Sprintf("/proc/self/fd/%d/descriptor", d.Fd()), in("descriptor"))
			require.NoError(t, os.Symlink(s.path("root"), s.path("to-root")))
			serve(s.path("to-root/link"), in("link"))
			serve(in("before"), in("renamed"))
			serve(s.path("outside/x"), in("moved"))
			c := s.command(`sleep 0.3; for s in absolute descriptor link renamed moved late; do perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Peer => $ARGV[0]) and print "reached $ARGV[0]\n"' $s; done; echo end`)
			r := newRunner(t, proc.Config{Level: level, Network: network, Environ: append(os.Environ(), "HOME="+s.path("home"))})
			proc.TrustLevel(r, level)
			late := make(chan struct{})
			time.AfterFunc(100*time.Millisecond, func() {
				defer close(late)
				if l, err := net.Listen("unix", in("late")); err == nil {
					s.serveAs(t, l, "late", in("late"))
				}
			})
			_, out := run(t, r, c)
			<-late
			if level == proc.Off {
				require.Contains(t, out, "reached absolute\nreached descriptor\nreached link\nreached renamed\nreached moved\nreached late\n")
				continue
			}
			require.Equal(t, "end\n", out, "%s, network %t", level, network)
			require.Empty(t, s.settle(t), level)
		}
	}
}

// TestAllowedSocket: a command can connect to the allowed socket and to no
// other.
func TestAllowedSocket(t *testing.T) {
	t.Parallel()
	if missing(attack{needs: "gcc perl"}) != "" {
		t.Skip("no gcc or perl")
	}
	_, err := proc.New(proc.Config{Level: proc.L1, Sockets: []string{"/run/s"}})
	require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err))
	_, err = proc.New(proc.Config{Sockets: []string{"s"}})
	require.ErrorContains(t, err, "absolute path")
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	s := newScene(t)
	variables := serveSockets(t, s)
	temp, err := os.MkdirTemp("/tmp", "allowed") // commands have a private /tmp
	require.NoError(t, err)
	defer os.RemoveAll(temp)
	l, err := net.Listen("unix", temp+"/s")
	require.NoError(t, err)
	s.serveAs(t, l, "temp", temp+"/s")
	r := newRunner(t, proc.Config{
		Level: proc.L2, Environ: append(os.Environ(), "HOME="+s.path("home")),
		Sockets: []string{s.path("services/symbolic"), temp + "/s", s.path("services/none")},
	})
	proc.TrustLevel(r, proc.L2)
	prepare(t, s)
	try := func(script string) string {
		c := s.command(script)
		c.Env = slices.Concat(c.Env, variables)
		_, out := run(t, r, c)
		return out
	}
	require.Contains(t, try(`$T connect $S/renamed`), "ESCAPED")
	require.Contains(t, try(`$T connect $S/symbolic`), "ESCAPED")
	require.Contains(t, try(`cd $S; $T connect ./symbolic`), "ESCAPED")
	require.Contains(t, try(`$T connect `+temp+`/s`), "ESCAPED")
	require.NotContains(t, try(`$T connect $S/named; $T connect $S/none`), "ESCAPED")
	require.Contains(t, try(`chmod 777 $S/renamed || echo refused; rm $S/renamed || echo refused`), "refused")
}

// TestSocketsInsideWork: programs can use unix sockets of their own as usual.
func TestSocketsInsideWork(t *testing.T) {
	t.Parallel()
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	s := newScene(t)
	online := newRunner(t, proc.Config{Level: proc.L2, Network: true, Environ: append(os.Environ(), "HOME="+s.path("home"))})
	proc.TrustLevel(online, proc.L2)
	r := s.runner(t, proc.L2)
	for name, c := range map[string]attack{
		"a socket that was left":  {needs: "perl", script: `perl -MIO::Socket::UNIX -MErrno=:POSIX -e 'IO::Socket::UNIX->new(Local => "old", Listen => 5) or die; IO::Socket::UNIX->new(Peer => "old") and die; die $! unless $! == ECONNREFUSED; unlink "old"; $l = IO::Socket::UNIX->new(Local => "old", Listen => 5) or die; IO::Socket::UNIX->new(Peer => "old") or die'`},
		"renamed and linked":      {needs: "perl", script: `perl -MIO::Socket::UNIX -e '$l = IO::Socket::UNIX->new(Local => "r1", Listen => 5) or die; rename "r1", "r2"; link "r2", "r3"; IO::Socket::UNIX->new(Peer => $_) or die for "r2", "r3"; chdir "/"; IO::Socket::UNIX->new(Peer => "$ENV{ROOT}/r3") or die'`},
		"in /dev/shm":             {needs: "perl", script: `perl -MIO::Socket::UNIX -e '$l = IO::Socket::UNIX->new(Local => "/dev/shm/s", Listen => 5) or die; IO::Socket::UNIX->new(Peer => "/dev/shm/s") or die'`},
		"in TMPDIR":               {needs: "perl", script: `perl -MIO::Socket::UNIX -e '$p = "$ENV{TMPDIR}/s"; $l = IO::Socket::UNIX->new(Local => $p, Listen => 5) or die; IO::Socket::UNIX->new(Peer => $p) or die'`},
		"relative":                {needs: "perl", script: `mkdir d; cd d; perl -MIO::Socket::UNIX -e '$l = IO::Socket::UNIX->new(Local => "s", Listen => 5) or die; IO::Socket::UNIX->new(Peer => "./s") or die; chdir ".."; IO::Socket::UNIX->new(Peer => "d/../d/s") or die; IO::Socket::UNIX->new(Peer => "/proc/self/cwd/d/s") or die'`},
		"through a long path":     {needs: "perl", script: `d=$(printf 'x%.0s' {1..200}); mkdir $d; cd $d; perl -MIO::Socket::UNIX -e '$l = IO::Socket::UNIX->new(Local => "s", Listen => 5) or die' && exec 5<. && perl -MIO::Socket::UNIX -e '$l = IO::Socket::UNIX->new(Local => "t", Listen => 5) or die; IO::Socket::UNIX->new(Peer => "/proc/self/fd/5/t") or die; IO::Socket::UNIX->new(Peer => "/dev/fd/5/t") or die "dev"'`},
		"seqpacket":               {needs: "perl", script: `perl -MSocket -e 'socket(L, AF_UNIX, SOCK_SEQPACKET, 0) or die; bind(L, pack_sockaddr_un("q")) or die; listen(L, 5); socket(S, AF_UNIX, SOCK_SEQPACKET, 0); connect(S, pack_sockaddr_un("q")) or die'`},
		"abstract":                {needs: "perl", script: `perl -MSocket -e 'socket(L, AF_UNIX, SOCK_STREAM, 0) or die; bind(L, pack("Sa*", AF_UNIX, "\0own")) or die; listen(L, 5); socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack("Sa*", AF_UNIX, "\0own")) or die'`},
		"pairs":                   {needs: "perl", script: `perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die; syswrite(A, "x") or die'`},
		"errors":                  {needs: "perl", script: `perl -MSocket -MErrno=:POSIX -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un("none")); die $! unless $! == ENOENT; open F, ">f"; connect(S, pack_sockaddr_un("f")); die $! unless $! == ECONNREFUSED; connect(S, pack_sockaddr_un("f/g")); die $! unless $! == ENOTDIR; socket(I, AF_INET, SOCK_STREAM, 0); connect(I, pack_sockaddr_in(9, INADDR_LOOPBACK)); die $! unless $! == ECONNREFUSED; connect(I, "x" x 8); die $! unless $! == EINVAL or $! == EAFNOSUPPORT; connect(STDIN, pack_sockaddr_un("f")); die $! unless $! == ENOTSOCK'`},
		"UDP":                     {needs: "perl", script: `perl -MSocket -e 'socket(A, AF_INET, SOCK_DGRAM, 0); bind(A, pack_sockaddr_in(0, INADDR_LOOPBACK)); socket(B, AF_INET, SOCK_DGRAM, 0); send(B, "x", 0, getsockname(A)) or die; recv(A, $x, 1, 0); connect(B, getsockname(A)) or die; send(B, "y", 0) or die; recv(A, $x, 1, 0); die unless $x eq "y"'`},
		"a full backlog":          {needs: "perl", script: `perl -MIO::Socket::UNIX -e '$l = IO::Socket::UNIX->new(Local => "b", Listen => 1) or die; for (1..4) { if (!fork) { IO::Socket::UNIX->new(Peer => "b") or die; exit } } sleep 1; $l->accept or die for 1..4; wait for 1..4; exit $?'`},
		"an alarm while it waits": {needs: "perl", script: `perl -MIO::Socket::UNIX -MErrno=:POSIX -e '$l = IO::Socket::UNIX->new(Local => "i", Listen => 1) or die; $SIG{ALRM} = sub { print "rang\n"; alarm 1 }; @a = map { IO::Socket::UNIX->new(Peer => "i") or die } 1..2; alarm 1; $b = IO::Socket::UNIX->new(Peer => "i"); die "connected" if $b; die $! unless $! == EINTR'`},
		"a caller is killed":      {needs: "perl timeout", script: `perl -MIO::Socket::UNIX -e '$l = IO::Socket::UNIX->new(Local => "k", Listen => 1) or die; pipe R, W; @p = map { my $p = fork; if (!$p) { $c = IO::Socket::UNIX->new(Peer => "k"); syswrite W, "x"; sleep 99; exit } $p } 1..5; sysread R, $x, 1 for 1..2; sleep 1; kill 9, @p; wait for 1..5; sleep 1; $l->accept for 1..2; IO::Socket::UNIX->new(Peer => "k") or die'`},
		"ssh-agent":               {needs: "ssh-agent ssh-add", script: `eval $(ssh-agent -a $TMPDIR/agent) >/dev/null; ssh-add -l | grep -q 'no identities'; r=$?; kill $SSH_AGENT_PID; exit $r`},
		"tmux":                    {needs: "tmux", script: `export TMUX_TMPDIR=$TMPDIR; tmux -f /dev/null new-session -d -s x 'sleep 20' && tmux has-session -t x && tmux kill-server`},
		"git's credential cache":  {needs: "git", script: `mkdir -m 700 c; printf 'protocol=https\nhost=h\nusername=u\npassword=p\n' | git credential-cache --socket $PWD/c/s store && printf 'protocol=https\nhost=h\n' | git credential-cache --socket $PWD/c/s get | grep -q password=p; r=$?; git credential-cache --socket $PWD/c/s exit; exit $r`},
		"python's servers": {needs: "/usr/bin/python3", script: `/usr/bin/python3 -c '
import socketserver, threading, socket, multiprocessing.connection as m
s = socketserver.UnixStreamServer("py", socketserver.StreamRequestHandler); threading.Thread(target=s.handle_request).start(); c = socket.socket(socket.AF_UNIX); c.connect("py")
l = m.Listener(); threading.Thread(target=l.accept).start(); m.Client(l.address)'`},
		"node's servers": {needs: "node", script: `node -e 'const n=require("net"); const s=n.createServer(c=>c.end("x")).listen("n.sock",()=>n.connect("n.sock").on("data",d=>process.exit(0)).on("error",e=>{console.log(e);process.exit(1)}))'`},
	} {
		if program := missing(c); program != "" {
			t.Logf("%s: not run, no %s", name, program)
			continue
		}
		result, out := run(t, r, s.command(c.script))
		require.Zero(t, result.ExitCode, "%s: %s", name, out)
		s.reset(t)
		if name == "abstract" { // the machine's with the network
			continue
		}
		result, out = run(t, online, s.command(c.script))
		require.Zero(t, result.ExitCode, "%s with the network: %s", name, out)
		s.reset(t)
	}
}

// TestWithoutNotifications: if the supervisor cannot answer calls, L2 refuses
// unix sockets and reports that as a gap.
func TestWithoutNotifications(t *testing.T) {
	t.Parallel()
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	if os.Getenv("PROC_TEST_LACKING") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run=^TestWithoutNotifications$")
		cmd.Env = append(os.Environ(), "PROC_TEST_LACKING=pidfd_getfd")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: TestWithoutNotifications")
		return
	}
	refuse(t, unix.SYS_PIDFD_GETFD, unix.EPERM)
	for _, level := range []proc.Level{proc.Highest, proc.L2} {
		r := newRunner(t, proc.Config{Level: level})
		report, err := r.SelfTest(context.Background())
		require.NoError(t, err)
		require.Equal(t, proc.L2, report.Level)
		require.Contains(t, report.Gaps(), "programs that need unix sockets fail")
		_, out := run(t, r, proc.Command{
			Script: `perl -MSocket -e 'print "unix" if socket(S, AF_UNIX, SOCK_STREAM, 0); socket(L, AF_INET, SOCK_STREAM, 0); listen(L, 5); socket(S, AF_INET, SOCK_STREAM, 0); print "loopback" if connect(S, getsockname(L))'`,
			Rules:  rules{root: t.TempDir()},
		})
		require.Equal(t, "loopback", out)
	}
	r := newRunner(t, proc.Config{Sockets: []string{"/run/s"}})
	_, _, err := r.Run(context.Background(), proc.Command{Script: "true", Dir: "/", Rules: rules{root: t.TempDir()}})
	require.ErrorContains(t, err, "--allow-socket")
}
