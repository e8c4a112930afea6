//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// stronger lists the cases that are denied although the corpus only asks for
// undecided: their text shows what runs.
var stronger = []string{"xargs -I", "heredoc sh", "brace", "vim", "glob2"}

// programs are the special programs that cases need.
var programs = map[string]string{"vim": "vim", "PAGER": "man", "git env": "ssh"}

// scene is the environment of the corpus: a curl that leaves a mark in an
// allowed place, writes to a forbidden one, and calls a listener outside.
type scene struct {
	*place
	bin, log, outside string
	port              int
	called            chan struct{}
}

func newScene(t *testing.T, p *place) *scene {
	s := &scene{place: p, bin: filepath.Join(p.dir, "bin"), log: filepath.Join(p.root, "log"), outside: filepath.Join(p.dir, "outside"), called: make(chan struct{}, 1000)}
	require.NoError(t, os.Mkdir(s.outside, 0o777))
	require.NoError(t, os.Chmod(s.outside, 0o777))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	s.port = listener.Addr().(*net.TCPAddr).Port
	go func() { // ends with the listener
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
			s.called <- struct{}{}
		}
	}()
	curl := p.write("bin/curl", fmt.Sprintf("#!/bin/bash\necho ran >> %s\n(echo out > %s/mark) 2>/dev/null\n(exec 3<>/dev/tcp/127.0.0.1/%d) 2>/dev/null\nexit 0\n", s.log, s.outside, s.port))
	require.NoError(t, os.Chmod(curl, 0o755))
	p.write("root/t", "x")
	p.env = append(p.env, "PATH="+s.bin+":"+os.Getenv("PATH"))
	return s
}

type attack struct{ name, want, command string }

// attacks parses the corpus for a scene.
func (s *scene) attacks() (all []attack) {
	s.t.Helper()
	text, err := os.ReadFile("testdata/commands.tsv")
	require.NoError(s.t, err)
	places := strings.NewReplacer(
		`\n`, "\n", `\u00a0`, "\u00a0", "@REPEAT60", strings.Repeat("true;", 60)+"curl x", "{BINNAME}", "bin", "{BINGLOB}", s.dir+"/bi[n]",
		"{BIN}", s.bin, "{TOP}", s.dir, "{ROOT}", s.root, "{PORT}", fmt.Sprint(s.port), "{LOG}", s.log,
	)
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		command := columns[3]
		if columns[0] == "write+chmod" { // printf's own \n stays as it is
			command = strings.ReplaceAll(command, `\n`, `\\n`)
		}
		all = append(all, attack{columns[0], columns[1], places.Replace(command)})
	}
	require.Len(s.t, all, 85)
	return all
}

// escaped returns which outside resources were reached since the previous call.
func (s *scene) escaped() (how []string) {
	select {
	case <-s.called:
		how = append(how, "the listener outside was called")
	default:
	}
	entries, err := os.ReadDir(s.outside)
	require.NoError(s.t, err)
	for _, entry := range entries {
		how = append(how, "written outside: "+entry.Name())
		require.NoError(s.t, os.Remove(filepath.Join(s.outside, entry.Name())))
	}
	return how
}

// run runs one in every cases of the corpus through a server: refused commands must not run, others
// must not escape.
func (s *scene) run(server server, who string, every int) {
	t := s.t
	cases, escapes, ran := 0, 0, 0
	var notRun []string
	for i, a := range s.attacks() {
		if i%every != 0 {
			continue
		}
		if need := programs[a.name]; need != "" {
			if _, err := exec.LookPath(need); err != nil {
				notRun = append(notRun, a.name)
				continue
			}
		}
		cases++
		os.Remove(s.log)
		r := server.bash(a.command, "workdir", ".", "timeout", 20_000)
		_, err := os.Stat(s.log)
		if err == nil {
			ran++
		}
		want := a.want
		if slices.Contains(stronger, a.name) {
			want = "deny"
		}
		if want == "deny" {
			require.Equal(t, "COMMAND_DENIED", r.Code, "%s: %s: %s", who, a.name, r.Text)
			require.Error(t, err, "%s: %s was refused and ran", who, a.name)
			require.NotEmpty(t, r.Meta["policy"].(map[string]any)["rule"], a.name)
		} else {
			require.NotEqual(t, "COMMAND_DENIED", r.Code, "%s: %s: %s", who, a.name, r.Text)
			policy, ok := r.Meta["policy"].(map[string]any)
			require.True(t, ok, "%s: %s", a.name, r.Text)
			require.Equal(t, want, policy["decision"], a.name)
		}
		if how := s.escaped(); len(how) > 0 {
			escapes++
			t.Errorf("%s: %s escaped: %v", who, a.name, how)
		}
	}
	t.Logf("%s: %d cases, %d escapes, %d not run %v; the banned program ran confined in %d", who, cases, escapes, len(notRun), notRun, ran)
	require.Greater(t, ran, 10/every, "the scene works: what is undecided does run")
}

// Spellings of a banned command are decided as far as possible, and commands
// that run reach nothing outside. As root, the test also runs as nobody.
func TestCorpus(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	s := newScene(t, newOuterPlace(t))
	s.run(s.serve(), "as this user", 1)
	if os.Geteuid() != 0 {
		return
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Log("as nobody: not run, there is no setpriv")
		return
	}
	s = newScene(t, placeBelow(t, "/var/cache"))
	every := 3 // the rules are the same, and the sandbox knows no spellings
	if os.Getenv("BASH_LONG") != "" {
		every = 1
	}
	s.run(s.serveBin(asNobody(s.place), mcpkittest.Options{}), "as nobody", every)
}

// asNobody returns a program that runs the tool as an unprivileged user.
func asNobody(p *place) string {
	p.t.Helper()
	tool := filepath.Join(p.dir, "mcp-bash")
	mcpkittest.CopyProgram(p.t, mcpkittest.Build(p.t, "./tools/bash"), tool)
	require.NoError(p.t, os.Chmod(p.dir, 0o755))
	require.NoError(p.t, filepath.WalkDir(p.dir, func(path string, _ os.DirEntry, err error) error {
		require.NoError(p.t, err)
		return os.Lchown(path, 65534, 65534)
	}))
	script := p.write("as-nobody", "#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups "+tool+" \"$@\"\n")
	require.NoError(p.t, os.Chmod(script, 0o755))
	return script
}

// In allow-list mode every command of the corpus is refused, except those that
// only mention a banned command.
func TestCorpusInAllowListMode(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	s := newScene(t, newPlace(t))
	server := s.serve("--policy", "allow-list", "--allow", "echo *", "--allow", "true *", "--sandbox", "off")
	for _, a := range s.attacks() {
		r := server.bash(a.command)
		require.Equal(t, a.want != "allow", r.Code == "COMMAND_DENIED", "%s: %s", a.name, r.Text)
	}
	require.NoFileExists(t, s.log)
	require.Empty(t, s.escaped())
}

// Everyday commands are not refused, and run.
func TestOrdinaryCommands(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("not run, there is no git")
	}
	p := newOuterPlace(t)
	p.write("root/README.md", "links are good\ncurl and wget\nnc\n")
	p.write("root/main.go", "package main\n")
	p.write("root/run.sh", "echo script\n")
	p.write("home/.gitconfig", "[user]\n\tname = Somebody\n\temail = somebody@example.com\n")
	s := p.serve()
	require.Contains(t, s.bash("git init -q . && git add -A && git commit -qm first && chmod +x run.sh").Text, "exit 0")
	text, err := os.ReadFile("testdata/ordinary.txt")
	require.NoError(t, err)
	commands, hits := 0, 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		commands++
		r := s.bash(strings.TrimSuffix(line, "\n"), "workdir", ".")
		if r.IsError {
			hits++
			t.Errorf("%s: %s", line, r.Text)
		}
		require.NotContains(t, r.Text, "exit 126", line)
		require.NotContains(t, r.Text, "exit 127", line)
	}
	require.GreaterOrEqual(t, commands, 60)
	t.Logf("%d ordinary commands, %d refused", commands, hits)
}
