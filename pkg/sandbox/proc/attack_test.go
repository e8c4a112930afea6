//go:build linux

package proc_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// scene is what the attacks are aimed at. Each attack has one of its own.
type scene struct {
	dir    string
	env    []string
	files  proc.Rules
	reach  chan string // what listeners were reached
	victim *exec.Cmd
}

// place is a directory that a command at L2 would see if it were let: not in
// /tmp, which is another one there.
func place(t testing.TB) string {
	t.Helper()
	base := os.Getenv("PROC_TEST_PLACE")
	if base == "" {
		var err error
		base, err = os.UserCacheDir()
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(base, 0o755))
	}
	dir, err := os.MkdirTemp(base, "p")
	require.NoError(t, err)
	dir, err = filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func newScene(t testing.TB) *scene {
	t.Helper()
	s := &scene{dir: place(t), reach: make(chan string, 100)}
	for name, text := range map[string]string{
		"outside/file": "outside\n", "outside/dir/": "", "readonly/file": "read only\n",
		"home/.ssh/id_rsa": "CREDENTIAL\n", "home/.config/gh/hosts.yml": "CREDENTIAL\n", "home/.netrc": "CREDENTIAL\n",
		"home/.bash_history": "CREDENTIAL\n", "home/.docker/config.json": "CREDENTIAL\n", "home/.profile": "# nothing\n",
		"root/sub/id_rsa": "CREDENTIAL\n", "root/.git/hooks/pre-commit": "#!/bin/sh\n", "root/.git/HEAD": "ref: refs/heads/main\n",
		"root/.git/config": "[core]\n", "root/nested/.git/hooks/pre-commit": "#!/bin/sh\n", "root/.claude/settings.json": "{}\n",
		"root/.envrc": "true\n",
	} {
		path := filepath.Join(s.dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if !strings.HasSuffix(name, "/") {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "outside/dir"), 0o755))
	require.NoError(t, os.Symlink(".ssh", filepath.Join(s.dir, "home/keys")))
	s.startVictim(t)
	abstract := filepath.Base(s.dir) + "abstract"
	tcp := s.listen(t, "tcp", "127.0.0.1:0")
	udp, err := net.ListenPacket("udp", tcp)
	require.NoError(t, err)
	t.Cleanup(func() { udp.Close() })
	tcp6 := s.listen(t, "tcp", "[::1]:0")
	s.listen(t, "unix", filepath.Join(s.dir, "outside/s"))
	s.listen(t, "unix", filepath.Join(s.dir, "root/s"))
	s.listen(t, "unix", "@"+abstract)
	port := func(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
	s.env = []string{
		"OUT=" + filepath.Join(s.dir, "outside"), "ROOT=" + filepath.Join(s.dir, "root"), "RO=" + filepath.Join(s.dir, "readonly"),
		fmt.Sprintf("VICTIM=%d", s.victim.Process.Pid), fmt.Sprintf("SERVER=%d", os.Getpid()), "PORT=" + port(tcp), "PORT6=" + port(tcp6),
		"SOCK=" + filepath.Join(s.dir, "outside/s"), "RSOCK=" + filepath.Join(s.dir, "root/s"), "ABSTRACT=" + abstract,
	}
	box := sandbox.New(sandbox.Config{
		Roots: []string{filepath.Join(s.dir, "root"), filepath.Join(s.dir, "readonly") + ":ro"}, Getenv: func(name string) string {
			if name == "HOME" {
				return filepath.Join(s.dir, "home")
			}
			return ""
		},
	})
	s.files, err = box.FS(context.Background())
	require.NoError(t, err)
	return s
}

func (s *scene) startVictim(t testing.TB) {
	s.victim = exec.Command("sleep", "1000")
	s.victim.Env, s.victim.Dir = []string{"SECRET=1"}, filepath.Join(s.dir, "outside")
	out, err := os.Create(filepath.Join(s.dir, "outside", "log"))
	require.NoError(t, err)
	defer out.Close()
	s.victim.Stdout = out
	require.NoError(t, s.victim.Start())
	t.Cleanup(func() {
		s.victim.Process.Kill()
		s.victim.Wait()
	})
}

// listen takes connections, says so, and closes them at once.
func (s *scene) listen(t testing.TB, network, address string) string {
	l, err := net.Listen(network, address)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			select {
			case s.reach <- network + " " + address:
			default:
			}
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// run runs an attack and tells whether it had an effect.
func (s *scene) run(t testing.TB, level proc.Level, a attack) (escaped bool, out string) {
	t.Helper()
	r := newRunner(t, proc.Config{
		Level: level, Grace: 50 * time.Millisecond, Linger: 10 * time.Millisecond,
		Environ: append(os.Environ(), "HOME="+filepath.Join(s.dir, "home")),
	})
	proc.TrustLevel(r, level) // TestAttacks has tried it
	if ask, ok := onlyAsked[a.name]; ok && level == proc.Off {
		a.script = ask
	}
	c := proc.Command{Script: a.script, Dir: filepath.Join(s.dir, "root"), Env: s.env, Timeout: time.Minute, Rules: s.files}
	_, out = run(t, r, c)
	escaped = strings.Contains(out, "ESCAPED")
	select {
	case what := <-s.reach:
		escaped, out = true, out+"\nreached "+what
	default:
	}
	if level != proc.Off {
		escaped = escaped || s.damaged(t)
	}
	return escaped, out
}

// damaged looks, from outside, whether anything is not as it was made.
func (s *scene) damaged(t testing.TB) bool {
	text, _ := os.ReadFile(filepath.Join(s.dir, "outside/file"))
	names, _ := os.ReadDir(filepath.Join(s.dir, "outside"))
	log, _ := os.ReadFile(filepath.Join(s.dir, "outside/log"))
	readOnly, _ := os.ReadDir(filepath.Join(s.dir, "readonly"))
	return string(text) != "outside\n" || len(names) != 4 || len(log) > 0 || len(readOnly) != 1 || s.victim.Process.Signal(syscall.Signal(0)) != nil
}

// missing names a program, or an architecture, that an attack needs and that
// is not here.
func missing(a attack) string {
	for _, need := range strings.Fields(a.needs) {
		if need == "amd64" {
			if runtime.GOARCH != need {
				return need
			}
		} else if _, err := exec.LookPath(need); err != nil {
			return need
		}
	}
	return ""
}

func TestAttacks(t *testing.T) {
	enforced := levels(t)
	cases, escapes := 0, 0
	var notRun []string
	for kind, attacks := range map[string][]attack{"files": fileAttacks, "processes": processAttacks, "network": networkAttacks} {
		for _, a := range attacks {
			if program := missing(a); program != "" {
				notRun = append(notRun, a.name+" (no "+program+")")
				continue
			}
			works := false
			t.Run(kind+"/"+a.name+"/off", func(t *testing.T) {
				works, _ = newScene(t).run(t, proc.Off, a)
			})
			if !works {
				notRun = append(notRun, a.name+" (does not work unconfined)")
				continue
			}
			for _, level := range strings.Fields(a.levels) {
				if !slices.Contains(enforced, proc.Level(level)) {
					notRun = append(notRun, a.name+" at "+level+" (level not available)")
					continue
				}
				t.Run(kind+"/"+a.name+"/"+level, func(t *testing.T) {
					cases++
					if escaped, out := newScene(t).run(t, proc.Level(level), a); escaped {
						escapes++
						t.Errorf("escaped: %s", out)
					}
				})
			}
		}
	}
	t.Logf("%d cases, %d escapes, %d not run: %s", cases, escapes, len(notRun), strings.Join(notRun, "; "))
	require.Greater(t, cases, 0)
}
