//go:build linux

package proc_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// confined runs a script at a level in a scene's root.
func confined(t *testing.T, level proc.Level, s *scene, script string) (proc.Result, string) {
	t.Helper()
	return run(t, s.runner(t, level), s.command(script))
}

// TestWorkGoesOnInside: the confinement does not prevent everyday work.
func TestWorkGoesOnInside(t *testing.T) {
	cases := []attack{
		{"write in the root", bothLevels, "", `mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && ln a/d a/e && rm a/d && cat a/e`},
		{"use TMPDIR", bothLevels, "", `f=$(mktemp) && echo x > "$f" && cat "$f"`},
		{"use /tmp", onlyL2, "", `echo x > /tmp/f && cat /var/tmp/f`},
		{"use /dev/shm", onlyL2, "", `echo x > /dev/shm/f && cat /dev/shm/f`},
		{"devices", bothLevels, "", `head -c4 /dev/urandom >/dev/null && echo x > /dev/null && cat <(echo x) && echo x > /dev/stdout && echo x >&2`},
		{"pipes and groups", bothLevels, "", `seq 3 | sort -r | (read a; echo $a) && (sleep 0 & wait) && cat <<< x`},
		{"git commit", bothLevels, "git", `mkdir r && cd r && git init -q . && git config user.name x && git config user.email x@x && echo x > f && git add f && git commit -qm x && git log --oneline | grep -q x`},
		{"compile C", bothLevels, "gcc", `echo 'int main(){return 0;}' > a.c && gcc -o a a.c && ./a`},
		{"loopback", onlyL2, "python3", `python3 -c 'import socket; l = socket.create_server(("127.0.0.1", 0)); socket.create_connection(l.getsockname())'`},
		{"unix sockets", onlyL2, "python3", `python3 -c 'import socket; l = socket.socket(socket.AF_UNIX); l.bind("own"); l.listen(); socket.socket(socket.AF_UNIX).connect("own")'`},
		{"a terminal of its own", onlyL2, "python3", `python3 -c 'import pty; pty.spawn(["true"])'`},
		{"node", bothLevels, "node", `node -e 'require("fs").writeFileSync("n", "x")' && cat n`},
		{"node serves", onlyL2, "node", `node -e 'const h=require("http"); const s=h.createServer((q,a)=>a.end("x")).listen(0,"127.0.0.1",()=>h.get({port:s.address().port,host:"127.0.0.1"},r=>{r.resume();process.exit(r.statusCode==200?0:1)}))'`},
		{"see itself", bothLevels, "", `[ $(cat /proc/self/comm) = cat ] && kill -0 $$`},
		{"names and users", bothLevels, "", `id -un >/dev/null; getent passwd root >/dev/null`},
		{"home's settings are read", bothLevels, "", `grep -q nothing ~/.profile`},
		{"extended umask", bothLevels, "", `umask 077 && touch u && [ $(stat -c %a u) = 600 ]`},
	}
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			r := s.runner(t, level)
			for _, c := range cases {
				if program := missing(c); program != "" {
					t.Logf("%s: not run, no %s", c.name, program)
				} else if strings.Contains(c.levels, string(level)) {
					result, out := run(t, r, s.command(c.script))
					require.Zero(t, result.ExitCode, "%s: %s", c.name, out)
					s.reset(t)
				}
			}
		})
	}
}

// TestGoTestsPassInside: a command can build a Go package with a network
// server and run its tests.
func TestGoTestsPassInside(t *testing.T) {
	t.Parallel()
	if mcpkittest.RaceEnabled && !long {
		t.Skip("compiling is nothing to races; the other build does it")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go")
	}
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	s := newScene(t)
	root := filepath.Join(s.dir, "root")
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module m\n\ngo 1.26\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, "m_test.go"), []byte(`package m

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestServer(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	r, err := http.Get(s.URL)
	if err != nil || r.StatusCode != 404 {
		t.Fatal(r, err)
	}
}
`), 0o644))
	cache, err := exec.Command(goTool, "env", "GOCACHE").Output()
	require.NoError(t, err)
	r := newRunner(t, proc.Config{
		Level: proc.L2, Writable: []string{strings.TrimSpace(string(cache))},
		Environ: append(os.Environ(), "HOME="+filepath.Join(s.dir, "home"), "GOCACHE="+strings.TrimSpace(string(cache)), "GOFLAGS=-count=1"),
	})
	result, out := run(t, r, proc.Command{Script: "go test ./...", Dir: root, Rules: s.files})
	require.Zero(t, result.ExitCode, "%s", out)
	require.Contains(t, out, "ok")
}

func contains(all []proc.Level, one proc.Level) bool {
	for _, level := range all {
		if level == one {
			return true
		}
	}
	return false
}

// TestNetworkCanBeAllowed: with Network, a command reaches the network, and
// everything else stays confined.
func TestNetworkCanBeAllowed(t *testing.T) {
	if missing(attack{needs: "perl"}) != "" {
		t.Skip("no perl")
	}
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			r := newRunner(t, proc.Config{Level: level, Network: true, Environ: append(os.Environ(), "HOME="+filepath.Join(s.dir, "home"))})
			report, err := r.SelfTest(context.Background())
			require.NoError(t, err)
			require.Contains(t, report.Gaps(), "connect by TCP")
			works := []string{"perl", "bash", "UDP"}
			fails := []string{
				"unix socket outside", "unix socket in the root", "unix socket through a link", "abstract socket", "raw socket", "packet socket", "vsock",
			}
			for _, a := range networkAttacks {
				if slices.Contains(works, a.name) {
					_, out := run(t, r, s.command(a.script))
					require.Contains(t, out, "ESCAPED", a.name)
				}
				if slices.Contains(fails, a.name) {
					_, out := run(t, r, s.command(a.script))
					require.NotContains(t, out, "ESCAPED", a.name)
				}
			}
		})
	}
}

func TestNothingRunsWithoutRules(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		_, err := newRunner(t, proc.Config{Level: level}).Start(context.Background(), proc.Command{Script: "true", Dir: "/"})
		require.Equal(t, toolerr.NoRoot, toolerr.CodeOf(err))
	}
}

// TestNothingRunsWhenThePromisesAreNotKept: if a check fails, the level is
// refused, or with Highest the next one is used. The error names the failed
// check and the next step.
func TestNothingRunsWhenThePromisesAreNotKept(t *testing.T) {
	t.Parallel()
	enforced := levels(t)
	for name, c := range map[string]struct {
		level proc.Level
		fails map[proc.Level]string // a check that fails; "": the level cannot be set up
		want  proc.Level
	}{
		"nothing is there":       {proc.Highest, map[proc.Level]string{proc.L2: "", proc.L1: ""}, ""},
		"L2 is not there":        {proc.Highest, map[proc.Level]string{proc.L2: ""}, proc.L1},
		"L2 lets one through":    {proc.Highest, map[proc.Level]string{proc.L2: "write outside"}, proc.L1},
		"both let one through":   {proc.Highest, map[proc.Level]string{proc.L2: "leave a process running", proc.L1: "connect by TCP"}, ""},
		"L2 was asked for":       {proc.L2, map[proc.Level]string{proc.L2: "read secrets"}, ""},
		"L1 was asked for":       {proc.L1, map[proc.Level]string{proc.L1: "read secrets"}, ""},
		"off needs nothing":      {proc.Off, map[proc.Level]string{proc.L2: "", proc.L1: ""}, proc.Off},
		"everything is as it is": {proc.Highest, nil, proc.L2},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want != "" && !contains(enforced, c.want) {
				t.Skip(c.want + " is not available")
			}
			root := t.TempDir()
			command := proc.Command{Script: "touch " + filepath.Join(root, "ran"), Dir: "/", Rules: rules{root: root}}
			r := newRunner(t, proc.Config{Level: c.level})
			proc.FailChecks(r, c.fails)
			result, _, err := r.Run(context.Background(), command)
			if c.want != "" {
				require.NoError(t, err)
				require.Equal(t, c.want, result.Level)
				return
			}
			require.Equal(t, toolerr.SandboxUnavailable, toolerr.CodeOf(err))
			require.ErrorContains(t, err, "--sandbox off")
			for level, check := range c.fails {
				if (c.level == proc.Highest || c.level == level) && contains(enforced, level) {
					require.ErrorContains(t, err, check)
				}
			}
			require.NoFileExists(t, filepath.Join(root, "ran"))
		})
	}
}
