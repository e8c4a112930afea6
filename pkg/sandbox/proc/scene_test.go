//go:build linux

package proc_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// scene holds the targets of attacks.
type scene struct {
	dir       string
	files     proc.Rules
	reach     chan string // names of listeners that were reached
	victim    *exec.Cmd
	named     map[string]net.Listener
	listeners []net.Listener
	settling  map[string]func() error // connections of the test itself to sockets, see settle
	ports     []string
	env       []string // the variables of the scripts
}

// sceneFiles are the contents of a scene's files. A name that ends in a slash
// is an empty directory.
var sceneFiles = map[string]string{
	"outside/file": "outside\n", "outside/dir/": "", "readonly/file": "read only\n",
	"home/.ssh/id_rsa": "CREDENTIAL\n", "home/.config/gh/hosts.yml": "CREDENTIAL\n", "home/.netrc": "CREDENTIAL\n",
	"home/.bash_history": "CREDENTIAL\n", "home/.docker/config.json": "CREDENTIAL\n", "home/.profile": "# nothing\n",
	"root/sub/id_rsa": "CREDENTIAL\n", "root/sub/tls.pem": "-----BEGIN PRIVATE KEY-----\nCREDENTIAL\n",
	"root/.git/hooks/pre-commit": "#!/bin/sh\n", "root/.git/HEAD": "ref: refs/heads/main\n",
	"root/.git/config": "[core]\n", "root/bare.git/HEAD": "x\n", "root/bare.git/config": "[core]\n", "root/bare.git/objects/x": "", "root/bare.git/refs/x": "",
	"root/bare.git/hooks/x.sample": "", "root/plain/.git/config": "[core]\n", "root/nested/.git/hooks/pre-commit": "#!/bin/sh\n", "root/.claude/settings.json": "{}\n",
	"root/.envrc": "true\n",
}

// outsideNames lists the names in the directory outside if no attack changed
// it.
var outsideNames = map[string]bool{"file": true, "dir": true, "log": true, "s": true}

// place returns a directory that a command at L2 could see without masks. It
// is not in /tmp, which is private at L2.
func place(t testing.TB) string {
	t.Helper()
	return mcpkittest.OuterDir(t, sandboxtest.PlainUserDir())
}

func newScene(t testing.TB) *scene {
	t.Helper()
	s := &scene{dir: place(t), reach: make(chan string, 100), named: map[string]net.Listener{}, settling: map[string]func() error{}}
	t.Cleanup(func() {
		for _, l := range s.named {
			l.Close()
		}
		s.stopVictim()
	})
	abstract := filepath.Base(s.dir) + "abstract"
	tcp := s.listen(t, "tcp", "127.0.0.1:0").Addr().String()
	udp, err := net.ListenPacket("udp", tcp)
	require.NoError(t, err)
	t.Cleanup(func() { udp.Close() })
	port := func(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
	s.ports = []string{"PORT=" + port(tcp), "ABSTRACT=" + abstract}
	if tcp6, err := net.Listen("tcp", "[::1]:0"); err == nil { // not every machine has IPv6
		s.accept(t, tcp6)
		s.ports = append(s.ports, "PORT6="+port(tcp6.Addr().String()))
	}
	s.listen(t, "unix", "@"+abstract)
	s.reset(t)
	box := sandbox.New(sandbox.Config{
		Roots: []string{s.path("root"), s.path("readonly") + ":ro"}, Getenv: func(name string) string {
			if name == "HOME" {
				return s.path("home")
			}
			return ""
		},
	})
	s.files, err = box.FS(context.Background())
	require.NoError(t, err)
	return s
}

func (s *scene) path(name string) string { return filepath.Join(s.dir, name) }

func (s *scene) variables() []string {
	return append([]string{
		"OUT=" + s.path("outside"), "ROOT=" + s.path("root"), "RO=" + s.path("readonly"),
		fmt.Sprintf("VICTIM=%d", s.victim.Process.Pid), fmt.Sprintf("SERVER=%d", os.Getpid()),
		"SOCK=" + s.path("outside/s"), "RSOCK=" + s.path("root/s"),
	}, s.ports...)
}

// reset restores the files of the scene. It keeps the directories themselves,
// since they are open.
func (s *scene) reset(t testing.TB) {
	t.Helper()
	require.NoError(t, os.MkdirAll(s.path("outside"), 0o755))
	for _, dir := range []string{"root", "readonly", "home", "outside"} {
		os.Chmod(s.path(dir), 0o755)
		entries, _ := os.ReadDir(s.path(dir))
		for _, entry := range entries {
			if dir != "outside" || !outsideNames[entry.Name()] {
				require.NoError(t, os.RemoveAll(filepath.Join(s.path(dir), entry.Name())))
			}
		}
	}
	for name, text := range sceneFiles {
		path := s.path(name)
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(path, 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		require.NoError(t, os.Chmod(path, 0o644))
	}
	require.NoError(t, os.Symlink(".ssh", s.path("home/keys")))
	log, err := os.Lstat(s.path("outside/log"))
	if s.victim == nil || err != nil || log.Size() > 0 || !s.victimLives() {
		s.stopVictim()
		s.startVictim(t)
	}
	s.env = s.variables()
	for _, name := range []string{"outside/s", "root/s"} {
		if _, err := os.Lstat(s.path(name)); err != nil {
			if l := s.named[name]; l != nil {
				l.Close()
			}
			s.named[name] = s.listen(t, "unix", s.path(name))
		}
	}
	// A listener accepts connections in order. After it has accepted this one,
	// it has reported all earlier ones.
	for _, l := range s.listeners {
		if conn, err := net.Dial(l.Addr().Network(), l.Addr().String()); err == nil {
			io.Copy(io.Discard, conn)
			conn.Close()
		}
	}
	for {
		select {
		case <-s.reach:
		default:
			return
		}
	}
}

func (s *scene) startVictim(t testing.TB) {
	s.victim = exec.Command("sleep", "1000")
	s.victim.Env, s.victim.Dir = []string{"SECRET=1"}, s.path("outside")
	os.Remove(s.path("outside/log"))
	out, err := os.Create(s.path("outside/log"))
	require.NoError(t, err)
	defer out.Close()
	s.victim.Stdout = out
	require.NoError(t, s.victim.Start())
}

func (s *scene) stopVictim() {
	if s.victim != nil {
		s.victim.Process.Kill()
		s.victim.Wait()
	}
}

// victimLives reports whether the victim is running. After a kill it is a
// zombie.
func (s *scene) victimLives() bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.victim.Process.Pid))
	return err == nil && !strings.Contains(string(text), ") Z ") && s.victim.Process.Signal(syscall.Signal(0)) == nil
}

func (s *scene) listen(t testing.TB, network, address string) net.Listener {
	l, err := net.Listen(network, address)
	require.NoError(t, err)
	s.accept(t, l)
	return l
}

// accept accepts connections, reports each one, and closes it at once.
func (s *scene) accept(t testing.TB, l net.Listener) {
	s.listeners = append(s.listeners, l)
	t.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			select {
			case s.reach <- l.Addr().Network() + " " + l.Addr().String():
			default:
			}
			conn.Close()
		}
	}()
}

// runner returns a runner at a level for commands of the scene.
func (s *scene) runner(t testing.TB, level proc.Level) *proc.Runner {
	r := newRunner(t, proc.Config{
		Level: level, Grace: 50 * time.Millisecond, Linger: 10 * time.Millisecond, Environ: append(os.Environ(), "HOME="+s.path("home")),
	})
	proc.TrustLevel(r, level)
	return r
}

// command returns a command that runs a script in the scene's root.
func (s *scene) command(script string) proc.Command {
	return proc.Command{Script: script, Dir: s.path("root"), Env: s.env, Timeout: time.Minute, Rules: s.files}
}

// damaged reports whether a file outside was changed.
func (s *scene) damaged(t testing.TB) bool {
	text, _ := os.ReadFile(s.path("outside/file"))
	names, _ := os.ReadDir(s.path("outside"))
	log, err := os.ReadFile(s.path("outside/log"))
	readOnly, _ := os.ReadDir(s.path("readonly"))
	return string(text) != "outside\n" || len(names) != len(outsideNames) || err != nil || len(log) > 0 || len(readOnly) != 1 || !s.victimLives()
}
