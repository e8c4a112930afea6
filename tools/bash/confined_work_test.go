//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

const httpSuite = `package web

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
)

func TestServer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer s.Close()
	r, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(r.Body); string(body) != "hello" {
		t.Fatal(string(body))
	}
}

func TestUnix(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
`

// Developers' work succeeds in the sandbox: a Go test suite with servers on
// loopback and unix sockets, a commit with the user's identity.
func TestWorkInside(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	usable, missing := levels(t)
	if len(usable) == 0 || usable[0] != "L2" {
		t.Skipf("not run: levels %v are missing", missing)
	}
	p := newOuterPlace(t)
	p.write("root/go.mod", "module example.com/web\n\ngo 1.26\n")
	p.write("root/web_test.go", httpSuite)
	p.write("home/.gitconfig", "[user]\n\tname = Some Body\n\temail = somebody@example.com\n")
	// The build cache of this test is a root, too. The imports of the suite are
	// compiled ahead, without a time limit, since the cache may be empty.
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	gocache := strings.TrimSpace(string(cache))
	s := p.serveBin(mcpkittest.Build(t, "./tools/bash"), mcpkittest.Options{}, "--root", gocache, "--sandbox", "L2")
	environ := map[string]string{"GOCACHE": gocache, "GOFLAGS": "-buildvcs=false", "GOPROXY": "off"}
	ahead := exec.Command("go", "test", "-run", "^$", "./...")
	ahead.Dir, ahead.Env = p.root, slices.Clone(p.env)
	for name, value := range environ {
		ahead.Env = append(ahead.Env, name+"="+value)
	}
	out, err := ahead.CombinedOutput()
	require.NoError(t, err, string(out))
	r := s.bash("go test -count=1 ./...", "env", environ, "timeout", 300_000, "auto_background_after", 300_000)
	require.Contains(t, r.Text, "ok  \texample.com/web", r.Text)
	require.EqualValues(t, 0, number(t, r, "exit_code"))
	if _, err := exec.LookPath("git"); err == nil {
		r = s.bash("git init -q && git add -A && git commit -qm first && git log --format='%an <%ae>'")
		require.Contains(t, r.Text, "Some Body <somebody@example.com>\nexit 0")
	} else {
		t.Log("a commit: not run, there is no git")
	}
	// Without GOCACHE set, the cache is a kept one.
	require.Contains(t, s.bash("go env GOCACHE && touch $(go env GOCACHE)/kept").Text, p.kept)
	require.Contains(t, s.bash("ls $(go env GOCACHE)").Text, "kept\n")
}

// Credential stores are unreadable and nothing is written outside, whatever a
// command tries; settings files of the root can be read only while the network
// is off.
func TestOutsideIsClosed(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	p := newOuterPlace(t)
	secrets := []string{"home/.ssh/id_ed25519", "home/.aws/credentials", "home/.netrc", "home/.config/gh/hosts.yml", "home/.git-credentials", "home/.kube/config", "home/.bash_history", "home/.docker/config.json",
		"state/agents.key", "state/token", "state/hosts/1-a.sock", // for the sign-in of agents and of the host's clients
		"state/host.db", "state/host.db-wal", "state/audit/audit-1.jsonl"}
	for _, name := range secrets {
		p.write(name, "CREDENTIAL\n")
	}
	p.write("outside/file", "outside\n")
	p.write("root/.env", "TOKEN=VALUE\n")
	p.write("root/id_rsa", "CREDENTIAL\n")
	before := p.listing()
	usable, missing := levels(t)
	cases, escapes := 0, 0
	for _, level := range usable {
		if level == "off" {
			continue
		}
		s := p.serve("--sandbox", level)
		names := secrets
		if level == "L2" { // at L1 what is in a root is open, which is said
			names = append(names, "root/id_rsa")
		}
		for _, name := range names {
			path := filepath.Join(p.dir, name)
			for _, command := range []string{"cat " + path, "cp " + path + " stolen; cat stolen", "ln " + path + " hard; cat hard", "ln -s " + path + " soft; cat soft"} {
				cases++
				if strings.Contains(s.bash(command+"; rm -f stolen hard soft").Text, "CREDENTIAL") {
					escapes++
					t.Errorf("%s: %s", level, command)
				}
			}
		}
		for _, command := range []string{
			"echo x > ../outside/file", "echo x > ../outside/new", "rm -rf ../outside", "mv ../outside ../moved", "ln ../outside/file hard && echo x > hard; rm -f hard",
			"ln -s ../outside out; echo x > out/new; rm out", "mkdir ../new", "echo x >> ~/.profile", "echo x > ~/new", "cp /bin/true ../outside/", `echo x > "` + p.kept + `/new"`,
			`cd /; echo x > "` + p.dir + `/outside/other"`, "mkfifo ../outside/fifo", "truncate -s 0 ../outside/file", "sed -i s/o/x/ ../outside/file", "git init -q ../outside",
		} {
			cases++
			s.bash(command)
			if now := p.listing(); now != before {
				escapes++
				t.Errorf("%s: %s:\n%s", level, command, now)
				before = now
			}
		}
		require.Contains(t, s.bash("cat .env").Text, "VALUE", "builds go on")
	}
	if usable[0] == "L2" {
		cases++
		require.NotContains(t, p.serve("--sandbox", "L2", "--net", "on").bash("cat .env").Text, "VALUE")
		require.Contains(t, p.serve("--sandbox", "L2", "--allow-path", ".ssh").bash("cat ~/.ssh/id_ed25519").Text, "CREDENTIAL", "the user's own choice")
	}
	t.Logf("%d cases, %d escapes, levels not run %v", cases, escapes, missing)
}

// listing describes everything outside the root except the state, with
// contents.
func (p *place) listing() string {
	p.t.Helper()
	var b strings.Builder
	for _, dir := range []string{"home", "outside"} {
		require.NoError(p.t, filepath.WalkDir(filepath.Join(p.dir, dir), func(path string, d os.DirEntry, err error) error {
			require.NoError(p.t, err)
			b.WriteString(path + "\n")
			if d.Type().IsRegular() {
				text, err := os.ReadFile(path)
				require.NoError(p.t, err)
				b.Write(text)
			}
			return nil
		}))
	}
	_, err := os.Stat(filepath.Join(p.kept, "new"))
	return b.String() + toJSON(p.t, err == nil)
}
