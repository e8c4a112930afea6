package confine_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/confine"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// canary is in each file and variable that a server must not read.
const canary = "CANARY-7261"

// scene is a machine with a user: a home with secrets, a project in which the host was
// started, and directories that the server was given or not.
type scene struct {
	home, project, data, other, state string
	reached                           *atomic.Int64 // number of connections to the user's listeners
	sockets                           map[string]string
	neighbour                         *exec.Cmd // another process of the user
}

func newScene(t *testing.T) *scene {
	t.Helper()
	base := mcpkittest.OuterDir(t, "")
	s := &scene{
		home: filepath.Join(base, "home"), project: filepath.Join(base, "project"), data: filepath.Join(base, "data"),
		other: filepath.Join(base, "other"), state: filepath.Join(base, "home", ".local", "state", "toolroom"), reached: new(atomic.Int64), sockets: map[string]string{},
	}
	for path, text := range map[string]string{
		filepath.Join(s.home, ".ssh", "id_ed25519"):           canary,
		filepath.Join(s.home, ".aws", "credentials"):          canary,
		filepath.Join(s.home, ".config", "app", "settings"):   canary,
		filepath.Join(s.home, "notes.txt"):                    canary,
		filepath.Join(s.home, ".bashrc"):                      "# " + canary,
		filepath.Join(s.home, ".local", "bin", "tool"):        "#!/bin/sh\n",
		filepath.Join(s.other, "file"):                        canary,
		filepath.Join(s.state, "audit", "log"):                canary,
		filepath.Join(s.state, "servers", "another", "home"):  "",
		filepath.Join(s.project, "main.go"):                   "package main\n",
		filepath.Join(s.project, ".git", "config"):            "[core]\n",
		filepath.Join(s.data, "old"):                          "old\n",
		filepath.Join(base, "elsewhere", "deeper", "private"): canary,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	t.Setenv("HOME", s.home)
	t.Setenv("SERVICE_TOKEN", canary)
	s.listen(t, "tcp", "127.0.0.1:0")
	s.listen(t, "unix", filepath.Join(s.home, "agent.sock"))
	s.listen(t, "unix", fmt.Sprintf("@toolroom-confine-%d", time.Now().UnixNano()))
	s.neighbour = exec.Command("sleep", "600")
	s.neighbour.Env = []string{"NEIGHBOUR=" + canary}
	require.NoError(t, s.neighbour.Start())
	t.Cleanup(func() {
		require.NoError(t, s.neighbour.Process.Kill(), "the neighbour still ran")
		s.neighbour.Wait()
	})
	return s
}

// listen accepts connections and counts them.
func (s *scene) listen(t *testing.T, network, address string) {
	t.Helper()
	l, err := net.Listen(network, address)
	require.NoError(t, err)
	key := network
	if strings.HasPrefix(address, "@") {
		key = "abstract"
	}
	s.sockets[key] = l.Addr().String()
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.reached.Add(1)
			c.Close()
		}
	}()
}

// run runs a script as a confined server and returns its output.
func (s *scene) run(t *testing.T, settings confine.Settings, script string) string {
	t.Helper()
	out, err := s.try(t, settings, script)
	require.NoError(t, err)
	return out
}

// try is run with the error of the start.
func (s *scene) try(t *testing.T, settings confine.Settings, script string) (string, error) {
	t.Helper()
	out, p, err := s.start(t, settings, script, false)
	if err == nil {
		<-p.Done() // with whichever status: many attacks fail
	}
	return out, err
}

// watch runs a script as a watched server and returns the proposal.
func (s *scene) watch(t *testing.T, settings confine.Settings, script string) confine.Proposal {
	t.Helper()
	_, p, err := s.start(t, settings, script, true)
	require.NoError(t, err)
	return p.Proposal()
}

// start starts a script as a server and reads its output to the end.
func (s *scene) start(t *testing.T, settings confine.Settings, script string, watch bool) (string, *confine.Process, error) {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	p, err := confine.New(s.state).Start(context.Background(), confine.Program{
		Server: "hostile", Command: []string{"/bin/bash", "-c", script}, Dir: s.project, Env: os.Environ(), Stdio: [3]*os.File{null, write, write}, Grace: time.Second, Watch: watch,
	}, settings)
	write.Close()
	if err != nil {
		return "", nil, err
	}
	out, err := io.ReadAll(read)
	require.NoError(t, err)
	return string(out), p, nil
}

// attack runs each variant for each file $f, and returns the output. It requires that
// each of them ran. The time limit is only for a variant that blocks.
func (s *scene) attack(t *testing.T, settings confine.Settings, variants, files []string) string {
	t.Helper()
	var script strings.Builder
	fmt.Fprintf(&script, "exec 2>&1; export d=%q base=%q n=%d\n", s.data, filepath.Dir(s.home), s.neighbour.Process.Pid)
	for i, variant := range variants {
		each := fmt.Sprintf(`for f in "$@"; do echo "== %d"; export f; cd %q; [ -e "$d/old" ] || echo old >"$d/old"; ( %s ) | head -c 100000; done`, i, s.project, variant)
		fmt.Fprintf(&script, "timeout -k 1 120 bash -c %s variant '%s' </dev/null\n", quoted(each), strings.Join(files, "' '"))
	}
	out := s.run(t, settings, script.String())
	require.Equal(t, len(variants)*len(files), strings.Count(out, "== "), "each variant ran: %s", out)
	return out
}

// quoted quotes a script for the shell.
func quoted(script string) string { return "'" + strings.ReplaceAll(script, "'", `'\''`) + "'" }

// forEachLevel runs a test at each level that this machine enforces.
func forEachLevel(t *testing.T, test func(t *testing.T, s *scene, settings confine.Settings)) {
	for _, level := range []proc.Level{proc.L2, proc.L1} {
		t.Run(string(level), func(t *testing.T) {
			s := newScene(t)
			settings := confine.Settings{Level: level, Write: []string{s.data}}
			if _, err := s.try(t, settings, "true"); toolerr.CodeOf(err) == toolerr.SandboxUnavailable {
				t.Skip(err)
			} else {
				require.NoError(t, err)
			}
			test(t, s, settings)
		})
	}
}

// readers print the file in $f.
var readers = []string{
	`cat "$f"`, `dd if="$f"`, `while read -r l; do echo "$l"; done <"$f"`, `cp "$f" "$d/stolen"; cat "$d/stolen"`, `ln "$f" "$d/hard"; cat "$d/hard"`,
	`ln -s "$f" "$d/soft"; cat "$d/soft"`, `mv "$f" "$d/moved"; cat "$d/moved"`, `tar cf - "$f"`, `cat "/proc/self/root$f"`, `cat "/proc/1/root$f"`, `cat "/proc/$PPID/root$f"`,
	`cat "/proc/$n/root$f"`, `cat "/proc/self/cwd/../${f#$base/}"`, `cd "$d" && cat "../${f#$base/}"`, `python3 -c 'import sys;print(open(sys.argv[1]).read())' "$f"`,
	`unshare -rm sh -c 'mount --bind / /mnt; cat "/mnt$0"' "$f"`, `unshare -rm sh -c 'umount -l "$(dirname "$0")"; cat "$0"' "$f"`, `nsenter -t "$n" -m cat "$f"`, `chroot "/proc/$n/root" cat "$f"`,
	`mkdir -p "$d/up" "$d/w" "$d/m"; unshare -rm mount -t overlay o -o "lowerdir=$(dirname "$f"),upperdir=$d/up,workdir=$d/w" "$d/m"; cat "$d/m/$(basename "$f")"`,
	`for p in /proc/1 /proc/$PPID /proc/$n; do for x in "$p"/fd/* "$p"/cwd "$p"/root; do dd if="$x" iflag=nonblock bs=4k count=1; cat "$x$f"; done; done`,
	`mknod "$d/disk" b $(stat -c '0x%D' / | sed 's/0x\(..*\)\(..\)/0x\1 0x\2/'); dd if="$d/disk" bs=1M count=1`,
	`ls -R "$(dirname "$f")" | sed "s/^/names: /"; grep -r . "$(dirname "$f")"`,
}

// TestHostileServerReadsNothing: files of the user that the server was not given.
func TestHostileServerReadsNothing(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *scene, settings confine.Settings) {
		base := filepath.Dir(s.home)
		files := []string{
			s.home + "/.ssh/id_ed25519", s.home + "/.aws/credentials", s.home + "/.config/app/settings", s.home + "/notes.txt", s.home + "/.bashrc",
			s.other + "/file", s.state + "/audit/log", base + "/elsewhere/deeper/private",
		}
		out := s.attack(t, settings, readers, files)
		require.NotContains(t, out, canary)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Contains(t, string(text), canary)
		}
		out = s.run(t, settings, `env; set; for p in /proc/[0-9]*; do tr '\0' '\n' <$p/environ; cat $p/cmdline; done 2>&1`)
		require.NotContains(t, out, canary, "variables of the host and of other processes")
	})
}

// writers write to the path in $f, whose directory exists.
var writers = []string{
	`echo evil >"$f"`, `echo evil >>"$f"`, `touch "$f"`, `mkdir "$f.d"`, `ln -s /etc/passwd "$f.l"`, `ln "$d/old" "$f.h"`, `mv "$d/old" "$f.m"`, `mknod "$f.p" p`, `cp "$d/old" "$f.c"`,
	`ln -s "$(dirname "$f")" "$d/link"; echo evil >"$d/link/x"`, `rm -rf "$f" "$(dirname "$f")"/*`, `mv "$(dirname "$f")" "$d/taken"`, `chmod 777 "$f" "$(dirname "$f")"`, `chmod u+s "$f"`,
	`truncate -s 0 "$f"`, `python3 -c 'import os,sys;os.utime(sys.argv[1])' "$f"`, `setfattr -n user.x -v y "$f"`, `echo evil >"/proc/self/root$f"`, `echo evil >"/proc/$n/root$f"`,
	`unshare -rm sh -c 'mount -o remount,rw,bind /; echo evil >"$0"' "$f"`, `python3 -c 'import os,sys;fd=os.open(os.path.dirname(sys.argv[1]),os.O_RDONLY);os.open("x",os.O_CREAT|os.O_WRONLY,dir_fd=fd)' "$f"`,
}

// TestHostileServerWritesNothing: files outside the directories that the server was
// given. The project is readable.
func TestHostileServerWritesNothing(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *scene, settings confine.Settings) {
		before := sandboxtest.DescribeTree
		if settings.Level == proc.L1 { // Landlock does not restrict changes of modes, times and attributes
			before = contents
		}
		watched := map[string]string{}
		for _, dir := range []string{s.home + "/.ssh", s.home + "/.config", s.home + "/.local/bin", s.project, s.other, s.state + "/audit"} {
			watched[dir] = before(t, dir)
		}
		s.attack(t, settings, writers, []string{
			s.home + "/.ssh/authorized_keys", s.home + "/.bashrc", s.home + "/.config/autostart", s.home + "/.local/bin/tool", s.project + "/main.go", s.project + "/.git/config",
			s.other + "/file", s.state + "/audit/log", "/etc/cron.d/evil", "/usr/local/bin/evil",
		})
		for dir, want := range watched {
			require.Equal(t, want, before(t, dir), dir)
		}
		for _, path := range []string{"/etc/cron.d/evil", "/usr/local/bin/evil"} {
			_, err := os.Lstat(path)
			require.ErrorIs(t, err, os.ErrNotExist)
		}
		bashrc, err := os.ReadFile(s.home + "/.bashrc")
		require.NoError(t, err)
		require.Equal(t, "# "+canary, string(bashrc))
	})
}

// contents describes the names and contents in a directory.
func contents(t testing.TB, dir string) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			fmt.Fprintln(&all, path)
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %s %q\n", path, entry.Type(), text)
		return err
	}))
	return all.String()
}

// TestHostileServerReachesNothing: the network, sockets and processes of the user.
func TestHostileServerReachesNothing(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *scene, settings confine.Settings) {
		host, port, err := net.SplitHostPort(s.sockets["tcp"])
		require.NoError(t, err)
		script := fmt.Sprintf("exec 2>&1; h=%s p=%s u=%q a=%q n=%d d=%q\n", host, port, s.sockets["unix"], s.sockets["abstract"], s.neighbour.Process.Pid, s.data) + `
			exec 9<>"/dev/tcp/$h/$p"
			curl -s --max-time 2 "http://$h:$p/"
			curl -s --max-time 2 --unix-socket "$u" http://x/
			curl -s --max-time 2 --abstract-unix-socket "${a#@}" http://x/
			ln -s "$u" "$d/sock"; curl -s --max-time 2 --unix-socket "$d/sock" http://x/
			ln "$u" "$d/hard"; curl -s --max-time 2 --unix-socket "$d/hard" http://x/
			curl -s --max-time 2 --unix-socket "/proc/$n/root$u" http://x/
			python3 - "$h" "$p" "$u" "$a" <<-'EOF'
			import socket, sys
			h, p, u, a = sys.argv[1:]
			for family, kind, to in [(socket.AF_INET, socket.SOCK_STREAM, (h, int(p))), (socket.AF_INET, socket.SOCK_DGRAM, (h, int(p))), (socket.AF_INET6, socket.SOCK_STREAM, ("::ffff:" + h, int(p))),
			        (socket.AF_UNIX, socket.SOCK_STREAM, u), (socket.AF_UNIX, socket.SOCK_STREAM, "\0" + a[1:]), (socket.AF_INET, socket.SOCK_RAW, (h, 0)), (socket.AF_PACKET, socket.SOCK_RAW, ("lo", 0))]:
			    try:
			        s = socket.socket(family, kind, 1 if kind == socket.SOCK_RAW else 0)
			        s.settimeout(2)
			        s.connect(to)
			        print("connected", family, kind)
			    except Exception as e:
			        print(e)
			EOF
			kill -9 "$n"; kill -STOP "$n"; kill -9 -1 &
			nsenter -t "$n" -n true; gdb -p "$n" -batch </dev/null
			python3 -c 'import os,sys;os.pidfd_open(int(sys.argv[1]))and 0' "$n" && echo pidfd
			renice -n 19 "$n"
			echo end`
		s.run(t, settings, script)
		require.Zero(t, s.reached.Load(), "connections")
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.neighbour.Process.Pid))
		require.NoError(t, err)
		require.Contains(t, string(status), "State:\tS", "the neighbour was neither ended nor stopped")
	})
}

// TestHostileServerLeavesNothing: no process outlives the server.
func TestHostileServerLeavesNothing(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *scene, settings confine.Settings) {
		mark := fmt.Sprintf("7%d", time.Now().UnixNano()%1e8)
		s.run(t, settings, "setsid sleep "+mark+" >/dev/null & (setsid sh -c 'trap \"\" TERM HUP; sleep "+mark+"; :' >/dev/null 2>&1 &); nohup sleep "+mark+" >/dev/null 2>&1 & disown -a; sleep 0.2")
		out, _ := exec.Command("pgrep", "-f", "sleep "+mark).Output()
		require.Empty(t, string(out))
	})
}

func TestHostileServerAsAPlainUser(t *testing.T) {
	sandboxtest.AsPlainUser(t, "TestHostileServerReads.*", "TestHostileServerWrites.*", "TestHostileServerReaches.*", "TestHostileServerLeaves.*", "TestConfined.*")
}
